#include "src/formats/file_set.h"

#include <cstddef>
#include <utility>

namespace etude {
namespace {

constexpr size_t kMostOpen = 500;

}  // namespace

Status FileSet::Add(const std::string& path, std::string_view bytes) {
  if (complete_.size() == kMostOpen) ETUDE_RETURN_IF_ERROR(Commit());
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, CompleteFile(path, bytes));
  complete_.push_back(std::move(file));
  return {};
}

Status FileSet::Commit() {
  for (AtomicFile& file : complete_) ETUDE_RETURN_IF_ERROR(file.Commit());
  complete_.clear();
  return {};
}

}  // namespace etude
