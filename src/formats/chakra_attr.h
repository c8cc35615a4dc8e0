#pragma once

#include <protozero/pbf_reader.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/formats/chakra_attr_value.h"
#include "src/formats/chakra_schema.h"
#include "src/trace/trace_builder.h"

namespace etude::chakra {

// An AttributeProto.
struct AttrMessage {
  std::string_view name;
  AttrValue value;
  // It has a name and one value and nothing else (no doc_string, no unknown field).
  bool plain = false;
};

// Takes apart the message `bytes`. Throws protozero::exception where it is malformed.
void DecodeAttr(std::string_view bytes, AttrMessage& message);

// The Extra that keeps an attribute without a place: `field` is the whole field, tag included.
Extra ExtraOf(const AttrMessage& message, std::string_view field, TraceBuilder& builder);

// Appends an AttributeProto as field `tag` of `message`. A whole number takes the type `type` if it
// fits there, else one that it fits.
void AddIntAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                int64_t value);
void AddUintAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 uint64_t value);
void AddTextAttr(std::string& message, uint32_t tag, std::string_view name, std::string_view text);
void AddIntsAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 std::span<const int64_t> ints);

}  // namespace etude::chakra
