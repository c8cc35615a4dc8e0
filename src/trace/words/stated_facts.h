#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/trace.h"

namespace etude {

// Returns the text of the fact that a node's event has under `key`, as JSON has it (strings in
// quotes); nullopt without one.
std::optional<std::string_view> StatedText(const Trace& trace, NodeId node, std::string_view key);

// Returns the whole number that a node's event has under `key`; nullopt without one.
std::optional<int64_t> StatedNumber(const Trace& trace, NodeId node, std::string_view key);

}  // namespace etude
