#include "src/trace/copied_bytes.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace etude {

std::optional<Bytes> CopiedBytes(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  if (kind != NodeKind::kMemcpy && kind != NodeKind::kMemset) return std::nullopt;
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kJson || trace.text(extra.key) != "bytes") continue;
    const std::string_view text = trace.text(extra.text);
    int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error == std::errc() && end == text.data() + text.size() && bytes >= 0) return Bytes{bytes};
  }
  return std::nullopt;
}

}  // namespace etude
