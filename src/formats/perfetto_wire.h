#pragma once

#include <cstdint>
#include <string_view>

#include <protozero/pbf_reader.hpp>

#include "src/base/string_pool.h"
#include "src/formats/utf8.h"

// How the parts of the reader of Perfetto traces look at protobuf messages.
namespace etude::perfetto {

inline std::string_view View(protozero::data_view view) { return {view.data(), view.size()}; }

constexpr uint32_t Tag(auto field, protozero::pbf_wire_type type) {
  return protozero::tag_and_type(static_cast<uint32_t>(field), type);
}
constexpr uint32_t Delimited(auto field) {
  return Tag(field, protozero::pbf_wire_type::length_delimited);
}
constexpr uint32_t Varint(auto field) { return Tag(field, protozero::pbf_wire_type::varint); }

// A text field; what is no UTF-8 is repaired.
inline StringId InternText(StringPool& strings, protozero::data_view view) {
  const std::string_view bytes = View(view);
  return strings.Intern(utf8::IsValid(bytes) ? bytes : std::string_view(utf8::Repair(bytes)));
}

}  // namespace etude::perfetto
