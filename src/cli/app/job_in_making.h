#pragma once

#include <string>
#include <utility>

#include "src/base/result.h"

namespace etude {

// A job that is being made: a folder that does not exist yet, and beside it an empty file, which is
// locked as long as this object or the process that makes the job lives. Both files are gone with
// the object, but for a folder that was renamed. Where the file system locks nothing, what was left
// of killed processes stays.
class JobInMaking {
 public:
  // In the folder `jobs`, under names that begin with `name` and that nobody else has. kIo.
  static Result<JobInMaking> Begin(const std::string& jobs, const std::string& name);
  // Removes what processes that were killed have left in `jobs`. Others, and other threads, may
  // begin theirs meanwhile.
  static void RemoveAbandoned(const std::string& jobs);

  JobInMaking(JobInMaking&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  JobInMaking& operator=(JobInMaking&&) = delete;
  ~JobInMaking();

  std::string folder() const;
  const std::string& path() const { return path_; }  // of the empty file
  int lock() const { return file_; }                 // that file, open

 private:
  JobInMaking(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_;
};

}  // namespace etude
