#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/sim/machine/astra_config.h"
#include "src/sim/machine/machine.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Where the job of a point comes from: a path, or what is said of how it is generated.
struct SweepJobSource {
  std::string path;                   // from where the program runs; "": generated
  std::string groups;                 // file of the ranks of groups; "": none is said
  std::string compute = "durations";  // of recorded traces; or "flops"
  bool fill_ranks = false;
  std::map<std::string, nlohmann::json> generate;  // by key, as written; empty: not generated

  friend auto operator<=>(const SweepJobSource&, const SweepJobSource&) = default;
};

// A point with all that is said of it.
struct SweepPoint {
  std::vector<std::string> labels;  // by axis: what it says
  std::string name;                 // "point 3 (network.bandwidth 50GB/s)"
  std::string folder;               // of the spec, with a slash; "": the working folder
  SweepJobSource job;
  // What the job's files and folders are called where the spec names them: "sweep.toml:3:7: job".
  std::map<std::string, std::string> places;
  std::map<std::string, std::string> generate_places;  // by the keys of `generate`
  // All that the machine is made of, without a file: "network", "system", "memory" as in
  // ASTRA-sim's files, and what is said beside them.
  nlohmann::json machine;
  std::optional<Bytes> capacity;  // of a device's memory, as the spec says; nullopt: it does not

  // The path of a file that the spec names.
  std::string PathOf(const std::string& file) const;
};

// The machine of a point, and what the names of the files of its custom collectives begin with.
struct SweepMachine {
  SimMachine machine;
  AstraCollectives collectives;
};
Result<SweepMachine> MachineOf(const SweepPoint& point);

// GB/s of all links together, and what the machine costs. A ring of p NPUs has p links, of two one;
// p fully connected ones have p (p - 1) / 2, a switch has p; each carries its bandwidth both ways.
double LinkBandwidthOf(const SimMachine& machine);
// kBadInput where there are prices for another number of dimensions.
Result<double> CostOf(const SimMachine& machine, const SweepPrices& prices);

// Makes the points of a sweep. Reads each file of a machine once; not thread-safe.
class SweepPlanner {
 public:
  // `path`: of the spec, in whose folder the paths in it begin.
  SweepPlanner(const SweepSpec& spec, std::string path, Limits limits);

  // kBadInput with the point for what does not fit together, kIo for files.
  Result<SweepPoint> PointAt(size_t index);

  // The files of machines that were read so far.
  std::vector<std::string> files() const;

 private:
  Status Apply(const SweepSetting& setting, SweepPoint& point);
  Status ApplyToMachine(const SweepSetting& setting, SweepPoint& point);
  Result<nlohmann::json> ReadSection(const SweepSetting& setting, const SweepPoint& point);

  const SweepSpec& spec_;
  std::string path_;
  std::string folder_;  // of the spec, with a slash; "": the working folder
  Limits limits_;
  std::map<std::pair<std::string, std::string>, nlohmann::json> files_;  // by section and path
};

}  // namespace etude
