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
// How much of a file is made before a sink gets it.
inline constexpr size_t kFlushBytes = size_t{192} << 10;

// Writes what chakra_converter of Chakra 1.0.0 writes for `trace`, byte for byte: its data
// dependencies, its dangling references, its lost synchronisation. kBadInput, before anything is
// written, where it raises an exception; `name` appears in messages. The order of nodes in `trace`
// is that of the file.
Status WriteChakraEt(EtTrace& trace, const std::string& name, const Sink& sink);

}  // namespace etude::compat
