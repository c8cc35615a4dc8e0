#pragma once

#include <cstdint>
#include <string_view>

#include <protozero/pbf_reader.hpp>

// How readers look at protobuf messages: fields are switched on by number and wire type.
namespace etude::protobuf {

inline std::string_view View(protozero::data_view view) { return {view.data(), view.size()}; }

constexpr uint32_t Tag(auto field, protozero::pbf_wire_type type) {
  return protozero::tag_and_type(static_cast<uint32_t>(field), type);
}
constexpr uint32_t Delimited(auto field) {
  return Tag(field, protozero::pbf_wire_type::length_delimited);
}
constexpr uint32_t Varint(auto field) { return Tag(field, protozero::pbf_wire_type::varint); }

}  // namespace etude::protobuf
