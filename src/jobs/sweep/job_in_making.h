#pragma once

#include <string>
#include <utility>

#include "src/base/result.h"

namespace etude {

// A job under construction: the name of a new folder, and an empty lock file beside it, which is
// locked as long as this object or the process making the job lives. Both are removed with the
// object, unless the folder was renamed. On file systems without locks, remains of killed processes
// are kept.
class JobInMaking {
 public:
  // Begins a job in the folder `jobs`, under a unique name that begins with `name`. Returns kIo on
  // failure.
  static Result<JobInMaking> Begin(const std::string& jobs, const std::string& name);
  // Removes remains of killed processes in `jobs`. Safe while other processes and threads begin
  // jobs.
  static void RemoveAbandoned(const std::string& jobs);

  JobInMaking(JobInMaking&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  JobInMaking& operator=(JobInMaking&&) = delete;
  ~JobInMaking();

  std::string folder() const;
  const std::string& path() const { return path_; }  // path of the empty file

 private:
  JobInMaking(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_;
};

}  // namespace etude
