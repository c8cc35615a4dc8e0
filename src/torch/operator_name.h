#pragma once

#include <string_view>
#include <vector>

#include "src/trace/operator_name.h"

namespace etude {

// "aten" of "aten::add_".
inline std::string_view OperatorNamespace(std::string_view name) {
  const size_t colons = name.find("::");
  return colons == std::string_view::npos ? std::string_view() : name.substr(0, colons);
}

// For each argument of a schema whether the operator writes to it: "Tensor(a!) self".
std::vector<bool> UpdatedArguments(std::string_view schema);

}  // namespace etude
