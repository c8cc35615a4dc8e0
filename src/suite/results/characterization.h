#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/report/certificate/run_facts.h"
#include "src/report/page/page.h"
#include "src/report/text/table.h"
#include "src/suite/results/hot_spots.h"
#include "src/suite/results/run_record.h"
#include "src/trace/trace.h"

namespace etude::suite {

// Best measured rates of a machine, the limits of its roofline.
struct MachinePeaks {
  double flop_per_s = 0;   // of a large matrix product in float32
  double bytes_per_s = 0;  // of a large copy, reads and writes
};

// Work and operators of one recorded training step.
struct StepWork {
  // All calls of one operator. Shares are of the self time of all operators.
  struct Operator {
    std::string name;
    HotSpot category = HotSpot::kOther;
    int64_t count = 0;
    double share = 0;
  };
  double flop = 0;
  double bytes = 0;
  int64_t operators = 0;                // calls
  int64_t without_shapes = 0;           // calls excluded from flop and bytes
  std::optional<int64_t> tensor_bytes;  // peak of the tensors' memory, a lower bound
  std::vector<Operator> by_share;       // largest first
  std::array<double, static_cast<size_t>(kLastHotSpot) + 1> shares{};  // by HotSpot
  std::vector<std::string> layers;                                     // by name

  // Returns FLOP per byte; nullopt without bytes.
  std::optional<double> intensity() const;
  // Returns the number of operators that together take at least `share` of the time.
  int64_t Covering(double share) const;
};

// Returns the work of the step in a capture. kBadInput if it has no operators with times.
Result<StepWork> WorkOfStep(const Trace& trace);

// What characterizes a task at a scale, from runs in steps mode, a recorded step and training runs.
struct Characterization {
  RunRecord steps;                        // with one thread
  std::optional<RunRecord> steps_of_all;  // with all processors, if there are several
  StepWork work;
  std::vector<RunRecord> runs;  // in quality mode

  // Returns the median time of a step with one thread, in seconds.
  double step_seconds() const { return Median(steps.step_seconds); }
  // Returns the speedup by all threads over their number; nullopt with one processor.
  std::optional<double> efficiency() const;
  // Returns the mean epochs to the target of the runs that reached it; nullopt if none did.
  std::optional<double> epochs_to_target() const;
};

struct Characterizations {
  std::string scale;
  MachinePeaks peaks;
  std::vector<Characterization> tasks;
};

// Returns tables of factors, of the work of a step, of hot spots by category, and of operators.
std::vector<Table> CharacterizationTables(const Characterizations& all);
// docs/formats/suite_characterization.md
nlohmann::ordered_json ToJson(const Characterizations& all);
Page MakeCharacterizationPage(const Characterizations& all, const std::string& folder);

}  // namespace etude::suite
