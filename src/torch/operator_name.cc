#include "src/torch/operator_name.h"

namespace etude {

std::vector<bool> UpdatedArguments(std::string_view schema) {
  std::vector<bool> updated;
  const size_t open = schema.find('(');
  if (open == std::string_view::npos) return updated;
  bool writes = false;
  int depth = 1;
  for (size_t i = open + 1; i < schema.size() && depth > 0; ++i) {
    const char c = schema[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == '!') writes = true;
    // A lone "*" separates keyword-only arguments and is none itself.
    if (depth == 0 || (depth == 1 && c == ',')) {
      const size_t begin = schema.find_last_of(",(", i - 1);
      if (schema.substr(begin + 1, i - begin - 1) != " *") updated.push_back(writes);
      writes = false;
    }
  }
  return updated;
}

}  // namespace etude
