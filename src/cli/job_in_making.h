#pragma once

#include <string>
#include <utility>

#include "src/base/result.h"

namespace etude {

// A job that is being made: a folder that does not exist yet, and beside it a file for errors,
// which is locked as long as this process or the one that makes the job lives. Both are gone with
// it, but for a folder that was renamed.
class JobInMaking {
 public:
  // In the folder `jobs`, under names that begin with `name` and that nobody else has. kIo.
  static Result<JobInMaking> Begin(const std::string& jobs, const std::string& name);
  // Removes what processes that were killed have left in `jobs`. Others, and other threads, may
  // begin theirs meanwhile.
  static void RemoveAbandoned(const std::string& jobs);

  JobInMaking(JobInMaking&& other) noexcept
      : log_(std::move(other.log_)), file_(std::exchange(other.file_, -1)) {}
  JobInMaking& operator=(JobInMaking&&) = delete;
  ~JobInMaking();

  std::string folder() const;
  const std::string& log() const { return log_; }
  int file() const { return file_; }  // the open log

 private:
  JobInMaking(std::string log, int file) : log_(std::move(log)), file_(file) {}

  std::string log_;
  int file_;
};

}  // namespace etude
