#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "src/base/container/byte_buffer.h"
#include "src/compat/chakra/proto_text.h"

namespace etude::compat {

// Values of Chakra's NodeType.
enum class ChakraType : uint8_t {
  kMetadata = 1,
  kMemLoad = 2,
  kMemStore = 3,
  kComp = 4,
  kSend = 5,
  kRecv = 6,
  kColl = 7,
};

// Values of Chakra's CollectiveCommType that Chakra's tools write.
enum class ChakraComm : uint8_t {
  kAllReduce = 0,
  kAllGather = 2,
  kBroadcast = 5,
  kAllToAll = 6,
  kReduceScatter = 7,
  kBarrier = 9,
};

// Builder of a Chakra attribute: a name, then at most one value. `field`: the value's field number
// in AttributeProto.
class ChakraAttr {
 public:
  explicit ChakraAttr(std::string_view name, std::string_view doc = "") {
    AppendBytesField(1, name, bytes_);
    if (!doc.empty()) AppendBytesField(2, doc, bytes_);
  }

  ChakraAttr& Varint(uint32_t field, uint64_t value) {
    AppendVarintField(field, value, bytes_);
    return *this;
  }
  ChakraAttr& Bytes(uint32_t field, std::string_view value) {
    AppendBytesField(field, value, bytes_);
    return *this;
  }
  // Adds a number of four or eight bytes.
  template <typename T>
  ChakraAttr& Fixed(uint32_t field, T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    bytes_.Ensure(20);
    PutTag(field, sizeof(T) == 4 ? WireType::kFixed32 : WireType::kFixed64, bytes_);
    bytes_.Append({reinterpret_cast<const char*>(&value), sizeof(T)});
    return *this;
  }
  // Adds a list message, with the values in its packed field 1.
  ChakraAttr& VarintList(uint32_t field, std::initializer_list<uint64_t> values) {
    ByteBuffer packed;
    for (const uint64_t value : values) {
      packed.Ensure(10);
      PutVarint(value, packed);
    }
    return Packed(field, packed);
  }
  template <typename T>
  ChakraAttr& FixedList(uint32_t field, std::initializer_list<T> values) {
    ByteBuffer packed;
    for (const T value : values) packed.Append({reinterpret_cast<const char*>(&value), sizeof(T)});
    return Packed(field, packed);
  }
  // Adds a list message of texts.
  ChakraAttr& BytesList(uint32_t field, std::span<const std::string> values) {
    ByteBuffer list;
    for (const std::string& value : values) AppendBytesField(1, value, list);
    return Bytes(field, list.view());
  }

  std::string_view view() const { return bytes_.view(); }

 private:
  ChakraAttr& Packed(uint32_t field, const ByteBuffer& packed) {
    ByteBuffer list;
    AppendBytesField(1, packed.view(), list);
    return Bytes(field, list.view());
  }

  ByteBuffer bytes_;
};

// Builder of a node: everything before its attributes, then one Attr call per attribute.
class ChakraNode {
 public:
  // `data_deps`: ids.
  ChakraNode(uint64_t id, std::string_view name, ChakraType type,
             std::span<const uint64_t> data_deps = {}, uint64_t duration_micros = 0) {
    if (id != 0) AppendVarintField(1, id, bytes_);
    if (!name.empty()) AppendBytesField(2, name, bytes_);
    AppendVarintField(3, static_cast<uint64_t>(type), bytes_);
    if (!data_deps.empty()) {
      ByteBuffer packed;
      for (const uint64_t dep : data_deps) {
        packed.Ensure(10);
        PutVarint(dep, packed);
      }
      AppendBytesField(5, packed.view(), bytes_);
    }
    if (duration_micros != 0) AppendVarintField(7, duration_micros, bytes_);
  }

  ChakraNode& Attr(const ChakraAttr& attr) {
    AppendBytesField(10, attr.view(), bytes_);
    return *this;
  }

  std::string_view view() const { return bytes_.view(); }

 private:
  ByteBuffer bytes_;
};

}  // namespace etude::compat
