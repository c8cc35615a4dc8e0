#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/machine/core_use.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/app/options.h"
#include "src/cli/app/stop_signal.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/run_record.h"
#include "src/suite/run.h"
#include "src/torch/group/rank_group.h"

namespace etude {

// Maxima of options.
inline constexpr int64_t kMostTrainingSteps = 1'000'000'000;
inline constexpr int64_t kMostSeeds = 1000;

// Task selection of a suite command: names, or all.
class TaskChoice {
 public:
  void Declare(Options& options);
  // Returns the tasks. kUsage with the nearest name for an unknown one.
  Result<std::vector<const suite::TaskFacts*>> Choose() const;

 private:
  std::vector<std::string> names_;
  bool all_ = false;
};

// Options for runs.
class RunSettings {
 public:
  void Declare(Options& options);
  // Call after parsing. kUsage for options that do not fit together.
  Status Read();

  suite::RunOptions run{.device = "cpu"};
  std::string scale = "smoke";
  int64_t ranks = 1;
  std::vector<std::string> libraries;

 private:
  std::string precision_ = "fp32";
  std::string optimizer_;  // "": the task's
  std::string sparse_;     // "": dense
  std::optional<double> density_;
  std::string sparse_shares_;
  std::string sparse_kernels_;
  std::optional<int64_t> sparse_update_every_;  // steps
};

// Makes runs in separate processes and stores their records in a folder. During its lifetime a
// first SIGINT (Ctrl-C) or SIGTERM lets the current run save its state and returns kInterrupted; a
// second one ends the program.
class SuiteRunner {
 public:
  enum class Mode : uint8_t { kQuality, kSteps };

  // Makes a runner. With `folder` "" no records are stored. Otherwise the machine's noise is
  // measured before the first run, which takes a second.
  static Result<std::unique_ptr<SuiteRunner>> Make(const RunSettings& settings,
                                                   const std::string& folder);
  ~SuiteRunner();
  SuiteRunner(const SuiteRunner&) = delete;
  SuiteRunner& operator=(const SuiteRunner&) = delete;

  // One run of a task, and its name.
  struct Job {
    const suite::TaskFacts* task = nullptr;
    suite::RunOptions options;
    std::string name;
  };

  // Checks the prerequisites of all jobs before the first one begins: existing records, and for
  // each task the device, data and settings. A single task is checked by its first run instead. The
  // error lists all problems, one per line.
  Status CheckAll(const std::vector<Job>& jobs, Mode mode, const RunContext& context);

  // Trains once with the seed of `options`, or returns the existing record of this name; an
  // unfinished run is resumed. kUsage if the record has other settings, or another run of the task
  // used another data set.
  Result<suite::RunRecord> Run(const suite::TaskFacts& task, Mode mode,
                               const suite::RunOptions& options, const std::string& name,
                               const RunContext& context);
  // Records a step of the task as a capture folder.
  Status Record(const suite::TaskFacts& task, const suite::RunOptions& options,
                const std::string& folder, const RunContext& context);

 private:
  SuiteRunner(const RunSettings& settings, std::string folder, bool temporary,
              std::unique_ptr<StopSignal> stop);
  // Returns the existing record of this name; nullopt if there is none. Errors as in Run.
  Result<std::optional<suite::RunRecord>> Kept(const suite::TaskFacts& task, Mode mode,
                                               const suite::RunOptions& options,
                                               const std::string& name, const RunContext& context);
  // Warn of cores used by other programs before the first run, and during the run of `record`, if
  // together they need more cores than the machine has.
  void TellBusyCores(const RunContext& context);
  void TellBusyCores(const CoreUse& before, suite::RunRecord& record,
                     const RunContext& context) const;
  // Runs `work` in one process per rank.
  Status RunRanksWith(const std::function<Status(int64_t rank, suite::DataParallel* ranks,
                                                 const RunContext& context)>& work,
                      RunContext context) const;

  RunSettings settings_;
  std::string folder_;
  bool temporary_;
  std::optional<double> noise_;
  bool has_begun_ = false;                        // a run has begun
  std::map<std::string, std::string> data_sets_;  // by task, used by its runs so far; "": unknown
  std::unique_ptr<StopSignal> stop_;
};

// Returns the name of a run: "image-classification.smoke.quality.1".
std::string RunName(const suite::TaskFacts& task, suite::Scale scale, SuiteRunner::Mode mode,
                    uint64_t seed);

// Returns the runs of all tasks with `seeds` seeds from `first_seed` on, ordered by task.
std::vector<SuiteRunner::Job> JobsOf(const std::vector<const suite::TaskFacts*>& tasks,
                                     const suite::RunOptions& options, SuiteRunner::Mode mode,
                                     int64_t first_seed, int64_t seeds);

}  // namespace etude
