#include "src/cli/job_in_making.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace etude {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLogSuffix = ".log";

std::string FolderOf(const std::string& log) {
  return log.substr(0, log.size() - kLogSuffix.size());
}

// The folder first: what has no file for errors is not found any more.
void Remove(const std::string& log) {
  std::error_code ignored;
  fs::remove_all(FolderOf(log), ignored);
  fs::remove(log, ignored);
}

// Whether the open file still has this name.
bool HasName(int file, const std::string& name) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && lstat(name.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

Result<JobInMaking> JobInMaking::Begin(const std::string& jobs, const std::string& name) {
  while (true) {
    std::string log = fmt::format("{}/{}.XXXXXX{}", jobs, name, kLogSuffix);
    const int file = mkostemps(log.data(), static_cast<int>(kLogSuffix.size()), O_CLOEXEC);
    if (file < 0) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: {}", log, std::strerror(errno)));
    }
    while (flock(file, LOCK_EX) != 0 && errno == EINTR) continue;
    // Before it was locked it looked abandoned.
    if (HasName(file, log)) return JobInMaking(std::move(log), file);
    close(file);
  }
}

void JobInMaking::RemoveAbandoned(const std::string& jobs) {
  std::vector<std::string> logs;
  std::error_code error;
  for (fs::directory_iterator at(jobs, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == kLogSuffix) logs.push_back(at->path().string());
  }
  for (const std::string& log : logs) {
    const int file = open(log.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && HasName(file, log)) Remove(log);
    close(file);
  }
}

JobInMaking::~JobInMaking() {
  if (file_ < 0) return;
  Remove(log_);
  close(file_);
}

std::string JobInMaking::folder() const { return FolderOf(log_); }

}  // namespace etude
