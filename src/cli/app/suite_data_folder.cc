#include "src/cli/app/suite_data_folder.h"

#include <cstdlib>

namespace etude {
namespace {

std::string VariableOr(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

std::string DefaultSuiteData() {
  return VariableOr(
      "ETUDE_SUITE_DATA",
      VariableOr("XDG_CACHE_HOME", VariableOr("HOME", ".") + "/.cache") + "/etude/suite");
}

}  // namespace etude
