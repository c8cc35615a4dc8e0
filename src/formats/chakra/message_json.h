#pragma once

#include <cstddef>
#include <string_view>

#include "src/base/container/byte_buffer.h"

namespace etude::chakra {

// Append the JSON of one message in protobuf's JSON mapping, with an initial indentation of two
// blanks per `level`, except on the first line. Return false, with partial output in `out`, if the
// bytes are not such a message.
bool AppendMetadataJson(std::string_view message, size_t level, ByteBuffer& out);
bool AppendNodeJson(std::string_view message, size_t level, ByteBuffer& out);

}  // namespace etude::chakra
