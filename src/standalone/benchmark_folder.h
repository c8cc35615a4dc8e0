#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/health.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/standalone/program.h"

namespace etude {

// A step as written in the files of a benchmark, and its figures for the README.
struct StepSource {
  std::string cpp;
  std::string python;
  std::string data;
  std::string gaps;                  // "" if unknown
  std::vector<ProgramGroup> groups;  // in the step's numbering
  int64_t calls = 0;
  int64_t calls_in_text = 0;
  int64_t operators = 0;  // number of different operators
  int64_t bytes = 0;      // memory that exists before the step
  int64_t threads = 1;
  int64_t left_out = 0;  // operators of the recorded step that do not run
  bool complete = true;  // complete except for a negligible part
  // Operators of libraries other than PyTorch. The code has to name them.
  std::vector<std::string> library_operators;
};
StepSource SourceOf(const Program& program);
// Serializes the source, for another process. StepSourceOf fails with kInternal for invalid bytes.
std::string ToBytes(const StepSource& source);
Result<StepSource> StepSourceOf(std::string_view bytes);

// Origin and accuracy of a benchmark, for its README; for a job: of the first rank. Names from the
// original program are included only if `keep_names` is set.
struct BenchmarkFacts {
  int64_t operators = 0;  // of the recorded step, and the part that the benchmark runs
  int64_t operators_run = 0;
  std::optional<double> time_coverage;
  struct LeftOut {
    std::string op;
    std::string reason;
    int64_t count = 0;
    std::optional<double> time_share;  // share of the recorded time of all operators
    Nanos stand_in;                    // time in a step's gaps that replaces them
  };
  std::vector<LeftOut> left_out;
  // Medians per step; nullopt: unknown.
  struct Figures {
    std::optional<Nanos> cpu;
    std::optional<Nanos> wall;
  };
  Figures original;  // without recording
  // Etude's replay of the same operators, measured when the benchmark was made, with and without
  // the original's time between operators.
  Figures with_gaps;
  Figures without_gaps;
  // Median page faults per step of the original and of the replay, and peak tensor memory.
  std::optional<double> original_faults;
  std::optional<double> replay_faults;
  Bytes peak;
  // Peak memory that steps add to the process.
  std::optional<Bytes> original_growth;
  std::optional<Bytes> replay_growth;
  std::string torch_version;
  std::string device;
  Health health;  // of the trace
  bool keep_names = false;
};

// Checks that `folder` can hold a benchmark. kBadInput for foreign files with a benchmark's file
// names.
Status CheckBenchmarkFolder(const std::string& folder);

// Writes the benchmark of a job into `folder`, which must exist: a C++ project, a Python program,
// their data and a README. `ranks` must contain all ranks in order. Replaces files of these names
// and removes other files of an earlier benchmark. Ranks that do the same share a step.
Status WriteBenchmark(std::span<const StepSource> ranks, const BenchmarkFacts& facts,
                      const std::string& folder);

}  // namespace etude
