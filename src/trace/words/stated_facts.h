#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/trace.h"

namespace etude {

// The whole number that a node's event says under `key`; nullopt if it says none.
std::optional<int64_t> StatedNumber(const Trace& trace, NodeId node, std::string_view key);

}  // namespace etude
