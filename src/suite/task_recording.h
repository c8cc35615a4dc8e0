#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/machine/process_usage.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/job/job_json.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {

// Returns the description of a task's steps: "learning-to-rank, smoke scale, batch 64", and the
// precision unless it is float32.
std::string StepDescription(const RunRecord& run);

// Times a step from construction to Read, including the device's work.
class StepStopwatch {
 public:
  explicit StepStopwatch(const std::string& device);
  StepTime Read() const;

 private:
  std::string device_;
  int64_t begin_ns_;
  Nanos cpu_;
  ProcessCounts counts_;
  std::optional<Nanos> stolen_;
};

// One rank's recording of a task: a native capture of one step, and its part of job.json, in the
// format of `etude record` (docs/formats/capture.md).
class TaskRecording {
 public:
  TaskRecording(std::string folder, int64_t rank) : folder_(std::move(folder)), rank_(rank) {}

  void AddTimed(int64_t index, StepTime time);
  // Runs and records `step`, which is the job's step number `index`.
  Status Record(int64_t index, const std::function<Result<StepTime>()>& step,
                const RunContext& context);
  // Returns this rank's part of job.json, as JSON.
  std::string Entry(const RunRecord& run) const;
  // Writes job.json with the parts of all ranks.
  Status WriteJob(const RunRecord& run, const std::vector<std::string>& entries) const;

 private:
  struct Timed {
    int64_t index;
    StepTime time;
  };
  std::string folder_;
  int64_t rank_;
  std::vector<Timed> timed_;
  int64_t recorded_index_ = 0;
  StepTime recorded_;
};

}  // namespace etude::suite
