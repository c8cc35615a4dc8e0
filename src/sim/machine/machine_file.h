#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/trace/words/enums.h"

namespace etude {

// Machine whose communications were measured; "" and nullopt: unknown.
struct MeasuredMachine {
  std::string backend;          // c10d backend: "gloo", "nccl"
  std::string device;           // "cpu", "cuda"
  std::optional<double> cores;  // usable by the ranks
  std::string cpu;
  std::string system;  // "Linux 6.1.0"
  std::string torch;   // version
  std::string gpu;     // of the first rank

  friend bool operator==(const MeasuredMachine&, const MeasuredMachine&) = default;
};

// Kind of a measured communication: a collective, or a message (a send with its receive).
using MeasuredKind = std::optional<CollectiveType>;  // nullopt: a message
inline constexpr MeasuredKind kMessageKind = std::nullopt;

// Returns the name in machine files: "all_reduce", "message".
std::string_view NameOfKind(const MeasuredKind& kind);
// Returns the kind of that name; the outer nullopt if there is none.
std::optional<MeasuredKind> KindNamed(std::string_view name);

// Measured times of one kind of communication by size.
struct MeasuredSeries {
  struct Point {
    int64_t bytes = 0;    // input of each rank; of the root for broadcast and scatter
    int64_t time_ns = 0;  // mean, from the last rank's call to the end on the last rank
    double spread = 0;    // standard error of the mean, as a share of it
    double cores = 0;     // kept busy by each rank on average, all its threads

    friend bool operator==(const Point&, const Point&) = default;
  };

  MeasuredKind kind;
  int64_t ranks = 2;
  bool noisy = false;         // written in spite of its noise
  std::vector<Point> points;  // at least one, ascending in bytes

  friend bool operator==(const MeasuredSeries&, const MeasuredSeries&) = default;
};

// Measured times of sizes between those of a series, and the times that the series predicts.
struct MeasuredCheck {
  struct Point {
    int64_t bytes = 0;
    int64_t time_ns = 0;
    int64_t predicted_ns = 0;

    friend bool operator==(const Point&, const Point&) = default;
  };

  MeasuredKind kind;
  int64_t ranks = 2;
  std::vector<Point> points;

  friend bool operator==(const MeasuredCheck&, const MeasuredCheck&) = default;
};

// Computation whose rate is measured, by ranks that do it at the same time.
enum class ComputationType : uint8_t {
  kCopy,      // of a tensor
  kAddition,  // of two tensors into a third, as in reductions
  kProduct,   // of two square matrices
};
inline constexpr std::array<ComputationType, 3> kComputationTypes = {
    ComputationType::kCopy, ComputationType::kAddition, ComputationType::kProduct};
// Returns the name in machine files: "copy", "addition", "product".
std::string_view NameOfComputation(ComputationType type);

// Measured times of a computation by size.
struct MeasuredComputation {
  struct Point {
    int64_t bytes = 0;    // of each tensor
    int64_t time_ns = 0;  // median
    double spread = 0;    // standard error of the mean, as a share of it

    friend bool operator==(const Point&, const Point&) = default;
  };

  ComputationType type = ComputationType::kCopy;
  DType dtype = DType::kFloat32;
  int64_t ranks = 1;  // that compute at the same time
  bool noisy = false;
  std::vector<Point> points;  // at least one, ascending in bytes

  // Returns the bytes that are read and written, or the operations of a product.
  double WorkOf(int64_t bytes) const;

  friend bool operator==(const MeasuredComputation&, const MeasuredComputation&) = default;
};

// Network of the model etude-1, fitted to the communications of a machine (MachineOf).
struct FittedNetwork {
  int64_t latency_ns = 0;       // of a message
  int64_t handling_ns = 0;      // of each message of a collective, at its receiver
  double bytes_per_second = 0;  // of a rank, in each direction
  std::optional<double> shared_bytes_per_second;  // of all ranks together; nullopt: no limit
  std::optional<double> added_bytes_per_second;   // in reductions; nullopt: they take no time

  friend bool operator==(const FittedNetwork&, const FittedNetwork&) = default;
};

// Content of a machine file: docs/formats/machine.md.
struct MachineFile {
  MeasuredMachine machine;
  std::vector<MeasuredSeries> series;  // one per kind and number of ranks
  std::vector<MeasuredCheck> checks;   // likewise, of series in the file
  std::optional<FittedNetwork> network;
  std::vector<MeasuredComputation> computations;  // one per type, dtype and number of ranks

  const MeasuredSeries* Find(const MeasuredKind& kind, int64_t ranks) const;
  const MeasuredCheck* FindCheck(const MeasuredKind& kind, int64_t ranks) const;
  const MeasuredComputation* FindComputation(ComputationType type, DType dtype,
                                             int64_t ranks) const;

  friend bool operator==(const MachineFile&, const MachineFile&) = default;
};

// Parses a machine file. `path` is its name in messages. kBadInput with file, line and column for
// invalid TOML, unknown keys and values of another form.
Result<MachineFile> ParseMachineFile(std::string_view text, const std::string& path);

// Returns the text of a machine file; spreads and cores have four decimals.
std::string MachineFileText(const MachineFile& file);

}  // namespace etude
