#include "src/run/step/updated_tensors.h"

#include <string_view>

#include "src/run/step/tensor_shape.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns a flag for each argument of the schema.
std::vector<bool> UpdatedArguments(std::string_view schema) {
  std::vector<bool> updated;
  for (const DeclaredValue& argument : SignatureOf(schema).arguments) {
    updated.push_back(argument.type.find('!') != std::string_view::npos);
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
