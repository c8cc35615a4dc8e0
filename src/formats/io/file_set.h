#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/formats/io/atomic_file.h"

namespace etude {

// Files that belong together in a folder, where they replace existing ones (Existing). No file gets
// its name before all are complete, or as many as may be open at a time: at most 500 and half of
// the process's limit. Uncommitted files are removed with the set. Not thread-safe.
class FileSet {
 public:
  FileSet();
  // Adds a file; kIo if the system fails.
  Status Add(const std::string& path, std::string_view bytes);
  // Gives all files their names, in the order in which they were added. Stops at the first failure
  // and removes the remaining files.
  Status Commit();

 private:
  size_t most_open_;
  std::vector<AtomicFile> complete_;
};

}  // namespace etude
