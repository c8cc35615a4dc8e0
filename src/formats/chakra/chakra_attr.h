#pragma once

#include <protozero/pbf_reader.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/formats/chakra/chakra_attr_value.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/trace/trace_builder.h"

namespace etude::chakra {

// An AttributeProto.
struct AttrMessage {
  std::string_view name;
  AttrValue value;
  // True if it has a name and one value and nothing else (no doc_string, no unknown field).
  bool plain = false;
};

// Decodes the message `bytes`. Throws protozero::exception if it is malformed.
void DecodeAttr(std::string_view bytes, AttrMessage& message);

// Returns the Extra for an attribute without a column. `field` is the whole field, tag included.
Extra ExtraOf(const AttrMessage& message, std::string_view field, TraceBuilder& builder);

// Returns the value of an attribute without a column, if it is a whole number.
std::optional<uint64_t> StatedUnsigned(const Trace& trace, NodeId node, std::string_view name);

// Attribute of generated traces: bytes of memory in use while a node runs, by a formula.
inline constexpr std::string_view kMemoryInUse = "etude_memory_bytes";

// Layout of a message's attributes: see kLayoutField.
class AttrLayout {
 public:
  // Returns true if the attribute of this row has occurred.
  bool Has(auto attr) const { return ((seen_ >> static_cast<unsigned>(attr)) & 1) != 0; }
  // Adds the attribute of `row`, which must not have occurred, with a value of `type`.
  void Add(const auto& row, ValueType type) {
    const auto number = static_cast<uint8_t>(row.attr);
    is_usual_ = is_usual_ && !has_extra_ && (seen_ >> number) == 0 && type == row.type;
    seen_ |= uint64_t{1} << number;
    note_ += static_cast<char>(number + 1);
    note_ += static_cast<char>(type);
  }
  // Adds an attribute that is kept as an Extra.
  void AddExtra() {
    has_extra_ = true;
    note_ += static_cast<char>(kLayoutExtra);
    note_ += '\0';
  }

  // Returns true if the attributes have the order and the types of the table, followed by extras.
  bool is_usual() const { return is_usual_; }
  // Returns the field that records the layout.
  std::string Note() const;

 private:
  uint64_t seen_ = 0;  // one bit per row
  bool is_usual_ = true;
  bool has_extra_ = false;
  std::string note_;
};
static_assert(kAttrCount <= 64 && kGlobalAttrCount <= 64);

// Append an AttributeProto as field `tag` of `message`. A whole number gets the type `type` if it
// fits, else another one.
void AddIntAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                int64_t value);
void AddUintAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 uint64_t value);
void AddTextAttr(std::string& message, uint32_t tag, std::string_view name, std::string_view text);
void AddIntsAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 std::span<const int64_t> ints);

}  // namespace etude::chakra
