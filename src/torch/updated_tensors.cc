#include "src/torch/updated_tensors.h"

#include <string_view>

#include "src/analysis/tensor_shape.h"

namespace etude {
namespace {

// By argument of the schema.
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

}  // namespace

std::vector<bool> UpdatedTensors::Of(NodeId node) {
  const StringId schema = trace_.op_schema(node);
  const auto [known, is_new] = arguments_.try_emplace(schema);
  if (is_new) known->second = UpdatedArguments(trace_.text(schema));
  const auto inputs = trace_.inputs(node);
  std::vector<bool> updated;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool writes = i < known->second.size() && known->second[i];
    auto add = [&](TensorId) { updated.push_back(writes); };
    ForEachTensor(trace_, inputs.subspan(i, 1), add);
  }
  return updated;
}

}  // namespace etude
