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
#include "src/sim/result/energy.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Source of a point's job: a path, or settings of a generator.
struct SweepJobSource {
  std::string path;                   // relative to the working folder; "": generated
  std::string groups;                 // file that lists the ranks of groups; "": none
  std::string compute = "durations";  // for recorded traces; or "flops"
  bool fill_ranks = false;
  std::map<std::string, nlohmann::json> generate;  // by key, as written; empty: not generated
  std::map<std::string, nlohmann::json> what_if;   // edits of a job, by key
  // For a generated job that is edited: contents of the files that `generate` names, by key, and
  // why the edits do not fit ("": they do), with the names of settings as in Misfit.
  std::map<std::string, std::string> files;
  std::string misfit;
  std::vector<std::string> misfit_keys;

  friend auto operator<=>(const SweepJobSource&, const SweepJobSource&) = default;
};

// A point with all of its settings.
struct SweepPoint {
  std::vector<std::string> labels;  // by axis
  std::string name;                 // "point 3 (network.bandwidth 50GB/s)"
  std::string folder;               // of the spec, with a trailing slash; "": the working folder
  SweepJobSource job;
  // Places in the spec that name the job's files and folders, for messages: "sweep.toml:3:7: job".
  std::map<std::string, std::string> places;
  std::map<std::string, std::string> generate_places;  // by key of `generate`
  // Machine settings: "network", "system", "memory" as in ASTRA-sim's files, with overrides
  // applied; the text of a network file in another form. "algorithms" is "gloo" or the text of
  // a file of algorithms, "machine" the text of a machine file, instead of a network, and "energy"
  // that of an energy file.
  nlohmann::json machine;
  std::string network_file;  // path of these four, for messages
  std::string algorithms_file;
  std::string machine_file;
  std::string energy_file;
  // Settings that only ASTRA-sim has, which choose its model: of the network, and others.
  bool network_of_astra = false;
  bool settings_of_astra = false;
  bool has_system_file = false;
  std::optional<Bytes> capacity;  // device memory, as set in the spec

  // Returns the path of a file that the spec names.
  std::string PathOf(const std::string& file) const;
};

// Machine of a point, the file name prefixes of its custom collectives, and the figures of energy.
struct SweepMachine {
  SimMachine machine;
  AstraCollectives collectives;
  std::optional<EnergyFigures> energy;
};
// Returns whether the machine has as many NPUs as the job has ranks: that of a machine file.
bool HasRanksOfJob(const SweepPoint& point);
// `ranks`: of the job; 0: not known yet, as long as HasRanksOfJob.
Result<SweepMachine> MachineOf(const SweepPoint& point, int64_t ranks = 0);

// Total bandwidth of all links in GB/s, counted once per link although both directions have it. A
// ring of p NPUs has p links (2 NPUs: one), p fully connected NPUs have p (p - 1) / 2, a switch has
// p.
double LinkBandwidthOf(const SimMachine& machine);
// Returns the cost of the machine. kBadInput for prices of another number of dimensions.
Result<double> CostOf(const SimMachine& machine, const SweepPrices& prices);

// Makes the points of a sweep. Reads each machine file once. Not thread-safe.
class SweepPlanner {
 public:
  // `path`: of the spec; paths in the spec are relative to its folder.
  SweepPlanner(const SweepSpec& spec, std::string path, Limits limits);

  // Returns a point. kBadInput with the point's name for inconsistent settings, kIo for files.
  Result<SweepPoint> PointAt(size_t index);

  // Returns the machine files read so far.
  std::vector<std::string> files() const;

 private:
  Status Apply(const SweepSetting& setting, SweepPoint& point);
  Status ApplyToMachine(const SweepSetting& setting, SweepPoint& point);
  Result<nlohmann::json> ReadSection(const SweepSetting& setting, const SweepPoint& point);

  const SweepSpec& spec_;
  std::string path_;
  std::string folder_;  // of the spec, with a trailing slash; "": the working folder
  Limits limits_;
  std::map<std::pair<std::string, std::string>, nlohmann::json> files_;  // by section and path
};

}  // namespace etude
