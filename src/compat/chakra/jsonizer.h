#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/chakra/byte_buffer.h"
#include "src/compat/chakra/et_converter.h"

namespace etude::compat {

// Writes the output of chakra_jsonizer for a Chakra trace: one JSON document for the metadata and
// one per node, without separators. kBadInput where it cannot decode a message.
Status WriteChakraJson(std::string_view et, const std::string& name, const Sink& sink);

// Append the JSON of one message as printed by protobuf, with an initial indentation of two blanks
// per `level`, except on the first line. Return false, with partial output in `out`, if the bytes
// are not such a message.
bool AppendMetadataJson(std::string_view message, size_t level, ByteBuffer& out);
bool AppendNodeJson(std::string_view message, size_t level, ByteBuffer& out);

}  // namespace etude::compat
