#include "src/torch/operator_library.h"

#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "src/torch/error_text.h"

namespace etude {

Status LoadOperatorLibrary(const std::string& path) {
  // Loads exactly this file, not one of the same name elsewhere.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(path, error);
  if (error) return BadInput("--library " + path + ": " + error.message());
  try {
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return {};
  } catch (const std::exception& thrown) {
    // Its operators are already registered, or their schemas are invalid.
    return BadInput("--library " + path + ": " + FirstLine(thrown.what()));
  }
  const char* said = dlerror();
  std::string_view reason = said == nullptr ? "cannot be loaded" : said;
  const std::string named = file.string() + ": ";  // prefix of most reasons
  if (reason.starts_with(named)) reason.remove_prefix(named.size());
  return BadInput("--library " + path + ": " + std::string(reason));
}

}  // namespace etude
