#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/words/enums.h"

// Rules that map Chakra's eight node types to nodes of a Trace. Shared by reader and writer: the
// writer adds an attribute if the rules alone would give another kind.
namespace etude::chakra {

struct KindFacts {
  uint32_t type = 0;
  Place place = Place::kUnknown;
  bool from_pytorch = false;  // has an rf_id
  bool is_operator = false;   // has a schema, or is a Triton kernel
  bool has_stream = false;    // on a device
  std::string_view name;
};

// Returns the kind for these facts.
NodeKind KindOf(const KindFacts& facts);

// Returns the NodeType for `kind`.
uint32_t TypeOf(NodeKind kind);

std::optional<NodeKind> KindFromName(std::string_view name);

// Returns true if the control dependency is the caller: in a PyTorch trace or on a stream, if it is
// the only one. All other control dependencies are plain ones.
inline bool CtrlDepIsParent(bool from_pytorch, bool on_stream, size_t ctrl_deps) {
  return (from_pytorch || on_stream) && ctrl_deps == 1;
}

std::optional<CollectiveType> CollectiveFromNumber(int64_t number);
// Returns nullopt for kUnknown.
std::optional<int64_t> NumberOf(CollectiveType type);

}  // namespace etude::chakra
