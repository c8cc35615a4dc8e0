#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/formats/atomic_file.h"

namespace etude {

// Files that belong together: none has its name before all are complete, or as many as a process
// may have open at a time. What is not committed is gone with the set. Not thread-safe.
class FileSet {
 public:
  // kIo if the system refuses.
  Status Add(const std::string& path, std::string_view bytes);
  // Gives all files their names, in the order in which they were added.
  Status Commit();

 private:
  std::vector<AtomicFile> complete_;
};

}  // namespace etude
