#pragma once

#include <string>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "src/base/result.h"

namespace etude {

// Returns the error of a YAML file, with its place.
inline tl::unexpected<Error> YamlError(const std::string& path, const YAML::Exception& error) {
  const bool is_deep = dynamic_cast<const YAML::DeepRecursion*>(&error) != nullptr;
  return BadInput(fmt::format("{}:{}:{}: {}", path, error.mark.line + 1, error.mark.column + 1,
                              is_deep ? "nested too deeply" : error.msg));
}

}  // namespace etude
