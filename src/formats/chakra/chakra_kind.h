#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/words/enums.h"

// The rules by which a Chakra node, which knows eight types, stands for a node of a Trace. Reader
// and writer share them: the writer adds an attribute where a rule alone would mislead the reader.
namespace etude::chakra {

struct KindFacts {
  uint32_t type = 0;
  Place place = Place::kUnknown;
  bool from_pytorch = false;  // has an rf_id
  bool is_operator = false;   // has a schema, or is a Triton kernel
  bool has_stream = false;    // on a device
  std::string_view name;
};

// The kind that these facts speak for.
NodeKind KindOf(const KindFacts& facts);

// The NodeType that stands for `kind`.
uint32_t TypeOf(NodeKind kind);

std::optional<NodeKind> KindFromName(std::string_view name);

// A node of a PyTorch trace, or on a stream, with one control dependency names its caller by it;
// all other control dependencies are plain ones.
inline bool CtrlDepIsParent(bool from_pytorch, bool on_stream, size_t ctrl_deps) {
  return (from_pytorch || on_stream) && ctrl_deps == 1;
}

std::optional<CollectiveType> CollectiveFromNumber(int64_t number);
// nullopt for kUnknown.
std::optional<int64_t> NumberOf(CollectiveType type);

}  // namespace etude::chakra
