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

// The most that options may ask for.
inline constexpr int64_t kMostTrainingSteps = 1'000'000'000;
inline constexpr int64_t kMostSeeds = 1000;

// Which tasks a command of the suite is about: names, or all.
class TaskChoice {
 public:
  void Declare(Options& options);
  // kUsage with the nearest spelling for a name that is none.
  Result<std::vector<const suite::TaskFacts*>> Choose() const;

 private:
  std::vector<std::string> names_;
  bool all_ = false;
};

// How runs are made, as options of a command.
class RunSettings {
 public:
  void Declare(Options& options);
  // After parsing.
  void Read();

  suite::RunOptions run{.device = "cpu"};
  std::string scale = "smoke";
  int64_t ranks = 1;
  std::vector<std::string> libraries;

 private:
  std::string precision_ = "fp32";
  std::string optimizer_;  // "": the task's
};

// Makes runs, each in processes of its own, and keeps their records in a folder. While it lives,
// SIGINT (Ctrl-C) and SIGTERM let the run that is at work keep what it has, and are kInterrupted; a
// second one ends the program.
class SuiteRunner {
 public:
  enum class Mode : uint8_t { kQuality, kSteps };

  // `folder` "": the records are kept nowhere. Else the machine's noise is measured before the
  // first run, which takes a second.
  static Result<std::unique_ptr<SuiteRunner>> Make(const RunSettings& settings,
                                                   const std::string& folder);
  ~SuiteRunner();
  SuiteRunner(const SuiteRunner&) = delete;
  SuiteRunner& operator=(const SuiteRunner&) = delete;

  // One run of a task, and the name that it is kept under.
  struct Job {
    const suite::TaskFacts* task = nullptr;
    suite::RunOptions options;
    std::string name;
  };

  // Looks at what all of them need before the first one begins: what is kept of them, and for each
  // task the device, its data and its settings. Of one task alone its first run finds out. The
  // error has all that is wrong, a line each.
  Status CheckAll(const std::vector<Job>& jobs, Mode mode, const RunContext& context);

  // Trains once with the seed of `options`, or takes the record that is kept already under this
  // name; an unfinished run goes on. kUsage if what is kept is of other settings, or if the task
  // had another data set in another run.
  Result<suite::RunRecord> Run(const suite::TaskFacts& task, Mode mode,
                               const suite::RunOptions& options, const std::string& name,
                               const RunContext& context);
  // Records a step of the task as a capture folder.
  Status Record(const suite::TaskFacts& task, const suite::RunOptions& options,
                const std::string& folder, const RunContext& context);

 private:
  SuiteRunner(const RunSettings& settings, std::string folder, bool temporary,
              std::unique_ptr<StopSignal> stop);
  // The record that is kept under this name; nullopt if there is none. Errors as those of Run.
  Result<std::optional<suite::RunRecord>> Kept(const suite::TaskFacts& task, Mode mode,
                                               const suite::RunOptions& options,
                                               const std::string& name, const RunContext& context);
  // Says which of the machine's cores other programs use, before the first run, and of `record`
  // what they used while it ran, if the two together want more than there are.
  void TellBusyCores(const RunContext& context);
  void TellBusyCores(const CoreUse& before, suite::RunRecord& record,
                     const RunContext& context) const;
  // In a process of each rank.
  Status RunRanksWith(const std::function<Status(int64_t rank, suite::DataParallel* ranks,
                                                 const RunContext& context)>& work,
                      RunContext context) const;

  RunSettings settings_;
  std::string folder_;
  bool temporary_;
  std::optional<double> noise_;
  bool has_begun_ = false;                        // a run has
  std::map<std::string, std::string> data_sets_;  // by task, of its runs so far; "": not known
  std::unique_ptr<StopSignal> stop_;
};

// "image-classification.smoke.quality.1": what a run is kept as.
std::string RunName(const suite::TaskFacts& task, suite::Scale scale, SuiteRunner::Mode mode,
                    uint64_t seed);

}  // namespace etude
