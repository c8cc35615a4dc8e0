#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/job/job_json.h"
#include "src/suite/data_parallel.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/hyperparameters.h"
#include "src/suite/results/run_record.h"
#include "src/suite/results/sparsity.h"

namespace etude::suite {

// User settings of a run; unset: from the task's hyperparameters.
struct RunOptions {
  Scale scale = Scale::kSmoke;
  uint64_t seed = 0;
  std::string device = "cpu";
  std::string data;
  Precision precision = Precision::kFp32;
  std::optional<double> loss_scale;
  std::optional<int64_t> threads;
  bool deterministic = false;  // nondeterministic operators are errors
  std::optional<int64_t> batch;
  std::optional<OptimizerOptions::Kind> optimizer;
  std::optional<double> rate;
  std::optional<int64_t> evaluate_every;  // steps
  std::optional<int64_t> most_steps;
  std::optional<double> target;
  std::optional<int64_t> table_rows;  // TaskOptions
  bool caravan = false;               // TaskOptions
  std::optional<SparseOptions> sparse;
  bool to_the_end = false;  // go on after the target
  bool shuffled_labels = false;
  bool frozen = false;
  // The name under which the run is kept encodes to_the_end, shuffled_labels and frozen.
  bool kind_in_name = false;
  std::string data_set;  // required data set, as in RunRecord; "": any
  // File in which the run is saved while it runs, and from which it resumes; "": none. Written by
  // the first rank.
  std::string checkpoint;
  int64_t warmup = 5;  // steps before the timed or recorded ones
  int64_t timed_steps = 20;
  bool tell_threads = false;  // warn of more threads than cores, on rank 0
};

// Checks a run without training: device, data, settings, and an existing record (`mode` as in
// RunRecord). Returns the errors that RunToQuality and RunSteps would return at their start.
Status CheckRun(const TaskFacts& facts, std::string_view mode, const RunOptions& options,
                DataParallel* ranks, const RunContext& context);

// Trains to the target, or up to the maximum of steps: time to quality. With `ranks`, as one of
// them; all return the same result except times. kInterrupted after RunContext::stop, with the
// checkpoint saved.
Result<RunRecord> RunToQuality(const TaskFacts& facts, const RunOptions& options,
                               DataParallel* ranks, const RunContext& context);

// Runs warm-up steps, then steps that are timed individually.
Result<RunRecord> RunSteps(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                           const RunContext& context);

// Runs the next step and returns its time.
using TimedStep = std::function<Result<StepTime>()>;
// Prepares the task, and then calls `use` once with the beginning of a record and the task's steps.
Status RunStepsOnRequest(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                         const std::function<Status(const RunRecord&, const TimedStep&)>& use,
                         const RunContext& context);

// Records a step as a capture folder after warm-up, with the times of unrecorded steps
// (docs/formats/capture.md).
Status RecordTask(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                  const std::string& folder, const RunContext& context);

}  // namespace etude::suite
