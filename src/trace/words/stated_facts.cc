#include "src/trace/words/stated_facts.h"

#include "src/base/text/quantity.h"

namespace etude {

std::optional<std::string_view> StatedText(const Trace& trace, NodeId node, std::string_view key) {
  for (const Extra& extra : trace.extras(node)) {
    if (trace.text(extra.key) == key) return trace.text(extra.text);
  }
  return std::nullopt;
}

std::optional<int64_t> StatedNumber(const Trace& trace, NodeId node, std::string_view key) {
  for (const Extra& extra : trace.extras(node)) {
    if (trace.text(extra.key) != key) continue;
    if (const auto number = ParseWhole(trace.text(extra.text))) return number;
  }
  return std::nullopt;
}

}  // namespace etude
