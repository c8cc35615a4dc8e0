#include "src/base/text/folder_names.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace etude {

Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  // No range-for: its increment would throw.
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return MakeError(ErrorCode::kIo, folder + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

}  // namespace etude
