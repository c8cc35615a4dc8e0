#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/container/byte_buffer.h"

// Encoding of protobuf messages with a mostly constant layout.
namespace etude::compat {

inline size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Writes at most ten bytes; requires reserved room.
inline void PutVarint(uint64_t value, ByteBuffer& out) {
  for (; value >= 0x80; value >>= 7) out.Put(static_cast<char>(value | 0x80));
  out.Put(static_cast<char>(value));
}

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

inline void PutTag(uint32_t field, WireType type, ByteBuffer& out) {
  PutVarint((field << 3) | static_cast<uint32_t>(type), out);
}

inline void AppendVarintField(uint32_t field, uint64_t value, ByteBuffer& out) {
  out.Ensure(15);
  PutTag(field, WireType::kVarint, out);
  PutVarint(value, out);
}

inline void AppendBytesField(uint32_t field, std::string_view bytes, ByteBuffer& out) {
  out.Ensure(15 + bytes.size());
  PutTag(field, WireType::kBytes, out);
  PutVarint(bytes.size(), out);
  if (!bytes.empty()) out.Put(bytes);
}

// Appends a message with its length prefix, as in files.
inline void AppendMessage(std::string_view message, ByteBuffer& out) {
  out.Ensure(10 + message.size());
  PutVarint(message.size(), out);
  if (!message.empty()) out.Put(message);
}

}  // namespace etude::compat
