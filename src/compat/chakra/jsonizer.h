#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/container/byte_buffer.h"
#include "src/base/result.h"
#include "src/compat/chakra/et_converter.h"

namespace etude::compat {

// Writes the output of chakra_jsonizer for a Chakra trace: one JSON document for the metadata and
// one per node, without separators. kBadInput where it cannot decode a message.
Status WriteChakraJson(std::string_view et, const std::string& name, const Sink& sink);

}  // namespace etude::compat
