#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/app/command.h"
#include "src/cli/app/task_loop.h"
#include "src/formats/job/job_json.h"
#include "src/suite/results/catalogue.h"

namespace etude {

// Settings of the recorded run of a task.
struct RecordingSettings {
  std::string scale = "smoke";
  int64_t seed = 1;
  std::optional<int64_t> batch;  // global
  std::optional<int64_t> threads;
  std::string device = "cpu";
  std::vector<std::string> libraries;  // loaded for a device
  int64_t ranks = 1;
  std::string precision = "fp32";
  std::string data;  // folder; "": the default one
  int64_t warmup = 5;
  int64_t iterations = 20;  // timed steps
};

// Recorded steps of tasks in FOLDER/recordings, one capture folder for each task. `etude suite
// benchmark` and `simulate` share them: existing ones are not recorded again.
class TaskRecordings {
 public:
  // Declares -o and the settings, except for ranks and numbers of steps.
  void Declare(Options& options, std::string_view content);

  const std::string& output() const { return output_; }
  std::string FolderOf(const suite::TaskFacts& task) const;

  // Returns the command that runs the task, as in the job.json of its recording.
  std::vector<std::string> CommandFor(const suite::TaskFacts& task) const;
  // Returns it with this program, the data folder and libraries.
  std::vector<std::string> CommandHere(const suite::TaskFacts& task) const;

  // Checks before any work that the output folder is new, or has recordings of the tasks with these
  // settings. kUsage otherwise. Recordings that cannot be read are no error here.
  Status CheckFolder(const std::vector<const suite::TaskFacts*>& tasks,
                     const RunContext& context) const;
  // Makes the output folder, with `folders` in it.
  Status MakeFolders(const std::vector<std::string>& folders) const;

  // Adds --library for each library to a command.
  void AddLibraries(std::vector<std::string>& words) const;

  // Returns job.json of the task's recording; nullopt if there is no complete recording.
  Result<std::optional<JobFile>> Find(const suite::TaskFacts& task,
                                      const RunContext& context) const;
  // Records a step of the current task of the loop.
  Status Record(const suite::TaskFacts& task, const TaskLoop& loop, const Console& console) const;

  RecordingSettings settings;

 private:
  std::string output_;
};

}  // namespace etude
