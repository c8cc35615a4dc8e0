#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data_parallel.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/hyperparameters.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {

// What the user says of a run; unset: as the task's hyperparameters have it.
struct RunOptions {
  Scale scale = Scale::kSmoke;
  uint64_t seed = 0;
  std::string device = "cpu";
  std::string data;
  Precision precision = Precision::kFp32;
  std::optional<double> loss_scale;
  std::optional<int64_t> threads;
  bool deterministic = false;  // operators that are not are errors
  std::optional<int64_t> batch;
  std::optional<OptimizerOptions::Kind> optimizer;
  std::optional<double> rate;
  std::optional<int64_t> evaluate_every;  // steps
  std::optional<int64_t> most_steps;
  std::optional<double> target;
  std::optional<int64_t> table_rows;  // TaskOptions
  bool to_the_end = false;            // go on after the target
  bool shuffled_labels = false;
  bool frozen = false;
  // The name that the run is kept under tells to_the_end, shuffled_labels and frozen.
  bool kind_in_name = false;
  std::string data_set;  // the only one that will do, as RunRecord has it; "": any
  // Where the run is kept while it goes on, and taken up again from; "": nowhere. Of several ranks
  // the first writes it.
  std::string checkpoint;
  int64_t warmup = 5;  // steps before those that are timed or recorded
  int64_t timed_steps = 20;
  bool tell_threads = false;  // warn of more threads than cores, where rank 0 begins
};

// Looks at what a run needs without training: device, data, settings, and what is kept of it
// (`mode` as RunRecord has it). What RunToQuality and RunSteps would refuse at their beginning.
Status CheckRun(const TaskFacts& facts, std::string_view mode, const RunOptions& options,
                DataParallel* ranks, const RunContext& context);

// Trains to the target, or as long as the hyperparameters say: time to quality. With `ranks` as one
// of them, each of which returns the same but for times. kInterrupted after RunContext::stop; the
// checkpoint is there then.
Result<RunRecord> RunToQuality(const TaskFacts& facts, const RunOptions& options,
                               DataParallel* ranks, const RunContext& context);

// Runs steps that are timed one by one, after some that are not.
Result<RunRecord> RunSteps(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                           const RunContext& context);

// Records a step as a capture folder, after warm-up, with the times of steps that were not recorded
// (docs/formats/capture.md).
Status RecordTask(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                  const std::string& folder, const RunContext& context);

}  // namespace etude::suite
