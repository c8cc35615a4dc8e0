#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// Quality metric of a task.
struct Metric {
  std::string_view name;  // "top-1 accuracy"
  bool higher_is_better = true;
};

// Source of a target.
enum class Origin : uint8_t {
  kMeasured,  // with several seeds, see docs/suite.md
  kFound,     // in AIBench's pages or code
  kRecalled,  // from AIBench's papers, by memory: not verified
};
std::string_view Name(Origin origin);

struct Target {
  double quality = 0;
  Origin origin = Origin::kMeasured;
};

// One task of the catalogue. Its implementation is in task_maker.h.
struct TaskFacts {
  std::string_view id;       // "image-classification"
  std::string_view aibench;  // AIBench's id: "C1"
  std::string_view title;
  std::string_view model;   // at paper scale
  std::string_view paper;   // of the model
  std::string_view blocks;  // building blocks of the model: "residual blocks"
  std::string_view loss;    // "cross entropy"
  Metric metric;
  std::string_view baseline;    // answer of Task::Baseline: "the most frequent class"
  std::string_view smoke_data;  // data set at smoke scale
  std::string_view paper_data;
  std::string_view mlperf;      // benchmarks of MLPerf Training of the same kind; "" without one
  bool accepted_metric = true;  // false: AIBench gives no target, for want of an accepted metric
  // From AIBench's papers, by memory: not verified, and printed as "recalled" only.
  std::optional<double> recalled_hours;  // to the target at paper scale, on one GPU of 2019
  // Standard deviation / mean of the epochs to the target, as a share.
  std::optional<double> recalled_variation;
  Target smoke;
  std::optional<Target> published;
  // Steps between evaluations at smoke scale by which the variation of the epochs to the target is
  // measured, at most 0.3 standard deviations (docs/models/suite_subset.md); nullopt: the
  // hyperparameters' suffice.
  std::optional<int64_t> variation_interval = {};

  // Returns the target of a scale; nullopt if AIBench has none.
  std::optional<Target> TargetOf(Scale scale) const {
    return scale == Scale::kSmoke ? std::optional(smoke) : published;
  }
  // Returns the steps between evaluations of a run that measures the variation, `wanted` if given;
  // nullopt: the hyperparameters'.
  std::optional<int64_t> VariationInterval(Scale scale, std::optional<int64_t> wanted) const {
    if (wanted) return wanted;
    return scale == Scale::kSmoke ? variation_interval : std::nullopt;
  }
};

// Returns all tasks in AIBench's order.
std::span<const TaskFacts> Catalogue();
// Finds a task by id or AIBench's id; nullptr if there is none.
const TaskFacts* FindTask(std::string_view name);
// Returns the tasks by these names, or with `all` all tasks. kUsage if both or neither are given,
// and with the nearest name for an unknown one.
Result<std::vector<const TaskFacts*>> ChooseTasks(std::span<const std::string> names, bool all);

// Returns whether `quality` is as good as `target`; false for NaN.
inline bool Reaches(const Metric& metric, double quality, double target) {
  return metric.higher_is_better ? quality >= target : quality <= target;
}

}  // namespace etude::suite
