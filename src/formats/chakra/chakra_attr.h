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
  // It has a name and one value and nothing else (no doc_string, no unknown field).
  bool plain = false;
};

// Takes apart the message `bytes`. Throws protozero::exception where it is malformed.
void DecodeAttr(std::string_view bytes, AttrMessage& message);

// The Extra that keeps an attribute without a place: `field` is the whole field, tag included.
Extra ExtraOf(const AttrMessage& message, std::string_view field, TraceBuilder& builder);

// What an attribute without a place says, if it is a whole number.
std::optional<uint64_t> StatedUnsigned(const Trace& trace, NodeId node, std::string_view name);

// Bytes of memory in use while a node runs, by a formula: an attribute of generated traces.
inline constexpr std::string_view kMemoryInUse = "etude_memory_bytes";

// How the attributes of a message stand: kLayoutField says what for.
class AttrLayout {
 public:
  // Whether the attribute of this row of the table has stood there.
  bool Has(auto attr) const { return ((seen_ >> static_cast<unsigned>(attr)) & 1) != 0; }
  // The next attribute is that of `row`, which must not have stood there, with a value of `type`.
  void Add(const auto& row, ValueType type) {
    const auto number = static_cast<uint8_t>(row.attr);
    is_usual_ = is_usual_ && !has_extra_ && (seen_ >> number) == 0 && type == row.type;
    seen_ |= uint64_t{1} << number;
    note_ += static_cast<char>(number + 1);
    note_ += static_cast<char>(type);
  }
  // The next attribute is kept as an Extra.
  void AddExtra() {
    has_extra_ = true;
    note_ += static_cast<char>(kLayoutExtra);
    note_ += '\0';
  }

  // They stand in the order and with the types of the table, extras behind them.
  bool is_usual() const { return is_usual_; }
  // The field that notes how they stand.
  std::string Note() const;

 private:
  uint64_t seen_ = 0;  // a bit for each row
  bool is_usual_ = true;
  bool has_extra_ = false;
  std::string note_;
};
static_assert(kAttrCount <= 64 && kGlobalAttrCount <= 64);

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
