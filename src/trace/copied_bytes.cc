#include "src/trace/copied_bytes.h"

#include <cstdint>

#include "src/trace/words/stated_facts.h"

namespace etude {

std::optional<Bytes> CopiedBytes(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  if (kind != NodeKind::kMemcpy && kind != NodeKind::kMemset) return std::nullopt;
  std::optional<int64_t> bytes = StatedNumber(trace, node, "bytes");
  if (!bytes) bytes = StatedNumber(trace, node, "copy_bytes");  // rocprofv3
  return bytes && *bytes >= 0 ? std::optional(Bytes{*bytes}) : std::nullopt;
}

}  // namespace etude
