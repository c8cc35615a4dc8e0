#include "src/replay/values/pinned_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// A copying operator, and which of its tensors it copies.
struct Copier {
  std::string_view op;
  size_t source = 0;
};
constexpr auto kCopiers = std::to_array<Copier>({
    {"aten::_to_copy", 0},
    {"aten::copy_", 1},
    {"aten::to", 0},
});

bool IsOnHost(const Trace& trace, const DataFlow::Use& use) {
  return trace.text(trace.tensor(use.tensor).device).starts_with("cpu");
}

bool WaitsForNothing(const Trace& trace, NodeId node) {
  const auto position = ArgumentPosition(SchemaOf(trace, node), "non_blocking");
  const auto inputs = trace.inputs(node);
  if (!position || *position >= inputs.size()) return false;
  const Value& value = inputs[*position];
  return value.kind == ValueKind::kBool && value.as_bool();
}

}  // namespace

std::unordered_set<StorageVersion> FindPinned(const RecordedStep& step, const DataFlow& flow) {
  const Trace& trace = step.trace();
  std::unordered_set<StorageVersion> pinned;
  for (const NodeId node : step.nodes()) {
    if (!step.is_operator(step.position(node))) continue;
    const std::string_view op = BaseOperatorName(SchemaOf(trace, node));
    const auto copier = std::ranges::find(kCopiers, op, &Copier::op);
    if (copier == kCopiers.end() || !WaitsForNothing(trace, node)) continue;
    const auto sources = flow.inputs(node);
    const auto results = flow.outputs(node);
    if (copier->source >= sources.size() || results.empty()) continue;
    const DataFlow::Use& source = sources[copier->source];
    if (!source.version || !IsOnHost(trace, source) || IsOnHost(trace, results.front())) continue;
    pinned.insert(source.version);
  }
  return pinned;
}

}  // namespace etude
