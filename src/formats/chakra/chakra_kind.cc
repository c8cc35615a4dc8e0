#include "src/formats/chakra/chakra_kind.h"

#include <algorithm>

#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/pytorch_et/et_names.h"

namespace etude::chakra {
namespace {

// Classifies by the profiler's names for copies and fills.
NodeKind KindOfDeviceNode(std::string_view name) {
  if (name.starts_with("Memcpy ")) return NodeKind::kMemcpy;
  if (name.starts_with("Memset ")) return NodeKind::kMemset;
  return NodeKind::kKernel;
}

}  // namespace

NodeKind KindOf(const KindFacts& facts) {
  const auto row = std::ranges::find(kNodeTypes, facts.type, &NodeTypeRow::number);
  if (row == kNodeTypes.end()) return NodeKind::kUnknown;
  if (row->kind != NodeKind::kCompute) return row->kind;
  const bool host = facts.place == Place::kHost;
  const bool device = facts.place == Place::kDevice;
  if (host && facts.from_pytorch) return KindOfEtNode(facts.name, facts.is_operator);
  if (device && (facts.from_pytorch || facts.has_stream)) return KindOfDeviceNode(facts.name);
  return NodeKind::kCompute;
}

uint32_t TypeOf(NodeKind kind) {
  if (kind == NodeKind::kUnknown) return kInvalidNode;
  const auto row = std::ranges::find(kNodeTypes, kind, &NodeTypeRow::kind);
  return row == kNodeTypes.end() ? kCompNode : row->number;
}

std::optional<NodeKind> KindFromName(std::string_view name) {
  for (size_t i = 0; i < kNodeKindCount; ++i) {
    if (Name(static_cast<NodeKind>(i)) == name) return static_cast<NodeKind>(i);
  }
  return std::nullopt;
}

std::optional<CollectiveType> CollectiveFromNumber(int64_t number) {
  const auto row = std::ranges::find(kCommTypes, number, &CommTypeRow::number);
  if (row == kCommTypes.end()) return std::nullopt;
  return row->type;
}

std::optional<int64_t> NumberOf(CollectiveType type) {
  const auto row = std::ranges::find(kCommTypes, type, &CommTypeRow::type);
  if (row == kCommTypes.end()) return std::nullopt;
  return row->number;
}

}  // namespace etude::chakra
