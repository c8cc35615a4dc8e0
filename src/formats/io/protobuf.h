#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <protozero/pbf_reader.hpp>

// Helpers for reading protobuf messages: switch on field number and wire type.
namespace etude::protobuf {

inline std::string_view View(protozero::data_view view) { return {view.data(), view.size()}; }

constexpr uint32_t Tag(auto field, protozero::pbf_wire_type type) {
  return protozero::tag_and_type(static_cast<uint32_t>(field), type);
}
constexpr uint32_t Delimited(auto field) {
  return Tag(field, protozero::pbf_wire_type::length_delimited);
}
constexpr uint32_t Varint(auto field) { return Tag(field, protozero::pbf_wire_type::varint); }

// Return the tag of the field in the bytes `field`, and the contents of a bytes field. Throw
// protozero::exception for invalid bytes.
inline uint32_t FieldTag(std::string_view field) {
  const char* at = field.data();
  return static_cast<uint32_t>(protozero::decode_varint(&at, at + field.size()));
}
inline std::string_view Payload(std::string_view field) {
  const char* at = field.data();
  const char* end = at + field.size();
  protozero::decode_varint(&at, end);
  const uint64_t length = protozero::decode_varint(&at, end);
  return {at, std::min(static_cast<size_t>(length), static_cast<size_t>(end - at))};
}

}  // namespace etude::protobuf
