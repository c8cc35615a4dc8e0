#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/chakra_link/et_trace.h"

namespace etude::compat {

// Receives the bytes of a file in order.
using Sink = std::function<Status(std::string_view)>;
// Bytes buffered before a sink is called.
inline constexpr size_t kFlushBytes = size_t{192} << 10;

// Writes the output of chakra_converter of Chakra 1.0.0 for `trace`, byte for byte, including its
// defects: data dependencies, dangling references and lost synchronisations. Nodes are written in
// the order of `trace`. kBadInput, before anything is written, where Chakra raises an exception;
// `name` appears in messages.
Status WriteChakraEt(EtTrace& trace, const std::string& name, const Sink& sink);

}  // namespace etude::compat
