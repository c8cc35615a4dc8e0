#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "src/base/hardware_counters.h"
#include "src/base/result.h"
#include "src/cli/line_channel.h"
#include "src/cli/process_tree.h"
#include "src/report/run_comparison.h"

namespace etude {

// What a side of a comparison answers when it has run one step.
struct PacedStep {
  bool counts = true;  // false: a step of another signature, or one that a profiler watched
  StepFigures figures;
};

// Runs one step of a side of a comparison and watches it from outside: hardware counters, and the
// memory that its process has in use while it runs.
class StepWatch {
 public:
  // `counters` of the side's processes; `level`: bytes in use before the side's first step.
  StepWatch(CounterSet counters, std::optional<int64_t> level)
      : counters_(std::move(counters)), level_(level) {}

  const CounterSet& counters() const { return counters_; }
  bool has_level() const { return level_.has_value(); }

  // Before the step is asked for; `process` runs it, 0 if that is not known.
  void Begin(pid_t process);
  // Again and again while it runs.
  void Look();
  // With the line that the side has answered. kInternal if that is no such line.
  Result<PacedStep> End(const std::string& answer);

  static constexpr std::chrono::milliseconds kBetweenLooks{10};

 private:
  CounterSet counters_;
  std::optional<int64_t> level_;
  pid_t process_ = 0;
  CounterSet::Reading before_;
  double resident_sum_ = 0;
  int64_t looks_ = 0;
};

// Waits for the next line of `channel` and calls `look` about every StepWatch::kBetweenLooks.
// nullopt: the other end has gone. kUnavailable with `late` if there is none in `time`.
Result<std::optional<std::string>> AwaitLine(ProcessTree& tree, LineChannel& channel,
                                             std::chrono::milliseconds time,
                                             const std::string& late,
                                             const std::function<void()>& look);

}  // namespace etude
