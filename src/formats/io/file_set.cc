#include "src/formats/io/file_set.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace etude {
namespace {

// Half of the process's limit: it has other files, too.
size_t MostOpen() {
  constexpr rlim_t kMost = 500;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<size_t>(std::clamp<rlim_t>(limit.rlim_cur / 2, 1, kMost));
}

}  // namespace

FileSet::FileSet() : most_open_(MostOpen()) {}

Status FileSet::Add(const std::string& path, std::string_view bytes) {
  if (complete_.size() >= most_open_) ETUDE_RETURN_IF_ERROR(Commit());
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, CompleteFile(path, bytes, Existing::kReplace));
  complete_.push_back(std::move(file));
  return {};
}

Status FileSet::Commit() {
  Status done;
  for (AtomicFile& file : complete_) {
    if (done) done = file.Commit();
  }
  complete_.clear();
  return done;
}

}  // namespace etude
