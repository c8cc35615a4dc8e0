#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/formats/io/atomic_file.h"

namespace etude {

// Files that belong together in a folder, in which they replace what has their names (Existing):
// none has its name before all are complete, or as many as are open at a time, 500 at most and half
// of what the process may have open. What is not committed is gone with the set. Not thread-safe.
class FileSet {
 public:
  FileSet();
  // kIo if the system refuses.
  Status Add(const std::string& path, std::string_view bytes);
  // Gives all files their names, in the order in which they were added. Those after the first that
  // cannot have its name are gone.
  Status Commit();

 private:
  size_t most_open_;
  std::vector<AtomicFile> complete_;
};

}  // namespace etude
