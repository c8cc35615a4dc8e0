#include "src/jobs/sweep/job_in_making.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "src/base/open_file.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLockSuffix = ".lock";

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.size() - kLockSuffix.size());
}

// Removes the folder first, because without its lock file it would not be found again.
void Remove(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(FolderOf(path), ignored);
  fs::remove(path, ignored);
}

}  // namespace

Result<JobInMaking> JobInMaking::Begin(const std::string& jobs, const std::string& name) {
  std::string path;
  const int file = OpenLocked(path, [&] {
    path = fmt::format("{}/{}.XXXXXX{}", jobs, name, kLockSuffix);
    return mkostemps(path.data(), static_cast<int>(kLockSuffix.size()), O_CLOEXEC);
  });
  if (file >= 0) return JobInMaking(std::move(path), file);
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
}

void JobInMaking::RemoveAbandoned(const std::string& jobs) {
  std::vector<std::string> locks;
  std::error_code error;
  for (fs::directory_iterator at(jobs, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == kLockSuffix) locks.push_back(at->path().string());
  }
  for (const std::string& path : locks) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (LockAbandoned(file, path)) Remove(path);
    close(file);
  }
}

JobInMaking::~JobInMaking() {
  if (file_ < 0) return;
  Remove(path_);
  close(file_);
}

std::string JobInMaking::folder() const { return FolderOf(path_); }

}  // namespace etude
