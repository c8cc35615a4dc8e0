#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

// What a task's quality is measured by.
struct Metric {
  std::string_view name;  // "top-1 accuracy"
  bool higher_is_better = true;
};

// Where a figure that we did not measure comes from.
enum class Origin : uint8_t {
  kMeasured,  // by `etude suite calibrate`, see docs/suite.md
  kFound,     // in AIBench's own pages or code
  kRecalled,  // from its papers, from memory: never a fact
};
std::string_view Name(Origin origin);

struct Target {
  double quality = 0;
  Origin origin = Origin::kMeasured;
};

// One task: a row of the table. What makes it is in task_maker.h.
struct TaskFacts {
  std::string_view id;       // "image-classification"
  std::string_view aibench;  // AIBench's number: "C1"
  std::string_view title;
  std::string_view model;  // at paper scale
  std::string_view paper;  // of the model
  Metric metric;
  std::string_view baseline;    // what Task::Baseline answers: "the most frequent class"
  std::string_view smoke_data;  // what the smoke scale learns
  std::string_view paper_data;
  Target smoke;
  std::optional<Target> published;

  // The target of a scale; none where AIBench gives none.
  std::optional<Target> TargetOf(Scale scale) const {
    return scale == Scale::kSmoke ? std::optional(smoke) : published;
  }
};

// All tasks, in AIBench's order.
std::span<const TaskFacts> Catalogue();
// By id or by AIBench's number; nullptr if there is none.
const TaskFacts* FindTask(std::string_view name);

// Whether `quality` is as good as `target`; what is not a number is not.
inline bool Reaches(const Metric& metric, double quality, double target) {
  return metric.higher_is_better ? quality >= target : quality <= target;
}

}  // namespace etude::suite
