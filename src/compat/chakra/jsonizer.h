#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/chakra/byte_buffer.h"
#include "src/compat/chakra/et_converter.h"

namespace etude::compat {

// Writes what chakra_jsonizer writes for a Chakra trace: one JSON document for the metadata and one
// for each node, with nothing between them. kBadInput where it cannot decode a message.
Status WriteChakraJson(std::string_view et, const std::string& name, const Sink& sink);

// Appends the JSON of one message as protobuf's own printer has it, two blanks an indent of `level`
// to begin with, without a blank in front. False, and any beginning of it in `out`, if the bytes
// are no such message.
bool AppendMetadataJson(std::string_view message, size_t level, ByteBuffer& out);
bool AppendNodeJson(std::string_view message, size_t level, ByteBuffer& out);

}  // namespace etude::compat
