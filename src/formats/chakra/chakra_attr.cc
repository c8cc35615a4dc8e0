#include "src/formats/chakra/chakra_attr.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <cstring>
#include <utility>

#include "src/base/text/utf8.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/json/json_text.h"

namespace etude::chakra {
namespace {

using protobuf::Delimited;
using protobuf::Tag;
using protobuf::Varint;
using protobuf::View;
using protozero::pbf_wire_type;

void SetSigned(AttrValue& value, int64_t number) {
  value.form = AttrValue::Form::kSigned;
  value.bits = static_cast<uint64_t>(number);
}

void SetUnsigned(AttrValue& value, uint64_t number) {
  value.form = AttrValue::Form::kUnsigned;
  value.bits = number;
}

// Decodes Int64List and Uint64List: numbers, packed or one by one.
void DecodeInts(protozero::data_view bytes, AttrValue& value) {
  value.form = AttrValue::Form::kInts;
  value.ints.clear();
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1): value.ints.push_back(reader.get_int64()); break;
      case Delimited(1):
        for (const int64_t number : reader.get_packed_int64()) value.ints.push_back(number);
        break;
      default: value.form = AttrValue::Form::kNone; reader.skip();
    }
  }
}

// Reads the field under the cursor if it is a supported value; else skips it.
void DecodeValue(protozero::pbf_reader& reader, AttrValue& value) {
  value.type = static_cast<ValueType>(reader.tag());
  value.form = AttrValue::Form::kNone;
  switch (reader.tag_and_type()) {
    case Tag(ValueType::kDouble, pbf_wire_type::fixed64):
      value.form = AttrValue::Form::kDouble;
      value.real = reader.get_double();
      return;
    case Tag(ValueType::kFloat, pbf_wire_type::fixed32):
      value.form = AttrValue::Form::kDouble;
      value.real = static_cast<double>(reader.get_float());
      return;
    case Varint(ValueType::kInt32):
      return SetSigned(value, static_cast<int32_t>(reader.get_int64()));
    case Varint(ValueType::kInt64): return SetSigned(value, reader.get_int64());
    case Varint(ValueType::kUint32):
      return SetUnsigned(value, static_cast<uint32_t>(reader.get_uint64()));
    case Varint(ValueType::kUint64): return SetUnsigned(value, reader.get_uint64());
    case Varint(ValueType::kSint32):
    case Varint(ValueType::kSint64): return SetSigned(value, reader.get_sint64());
    case Tag(ValueType::kFixed32, pbf_wire_type::fixed32):
      return SetUnsigned(value, reader.get_fixed32());
    case Tag(ValueType::kFixed64, pbf_wire_type::fixed64):
      return SetUnsigned(value, reader.get_fixed64());
    case Tag(ValueType::kSfixed32, pbf_wire_type::fixed32):
      return SetSigned(value, reader.get_sfixed32());
    case Tag(ValueType::kSfixed64, pbf_wire_type::fixed64):
      return SetSigned(value, reader.get_sfixed64());
    case Varint(ValueType::kBool): return SetUnsigned(value, reader.get_uint64() != 0 ? 1 : 0);
    case Delimited(ValueType::kString):
      value.form = AttrValue::Form::kText;
      value.text = View(reader.get_view());
      return;
    case Delimited(ValueType::kInt64List):
    case Delimited(ValueType::kUint64List): return DecodeInts(reader.get_view(), value);
    default: reader.skip();
  }
}

char* PutVarint(char* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}
char* PutTag(char* at, uint32_t tag, pbf_wire_type wire) {
  return PutVarint(at, tag << 3 | static_cast<uint32_t>(wire));
}
char* PutBytes(char* at, uint32_t tag, std::string_view bytes) {
  at = PutTag(at, tag, pbf_wire_type::length_delimited);
  at = PutVarint(at, bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

size_t TagSize(uint32_t tag) { return static_cast<size_t>(protozero::length_of_varint(tag << 3)); }
size_t BytesSize(uint32_t tag, std::string_view bytes) {
  return TagSize(tag) + static_cast<size_t>(protozero::length_of_varint(bytes.size())) +
         bytes.size();
}

// Appends an attribute without its value field, for which it reserves `value_size` bytes; returns
// their position.
char* BeginAttr(std::string& message, uint32_t tag, std::string_view name, size_t value_size) {
  constexpr auto kName = static_cast<uint32_t>(AttrField::kName);
  const size_t size = BytesSize(kName, name) + value_size;
  const size_t begin = message.size();
  message.resize(begin + TagSize(tag) + static_cast<size_t>(protozero::length_of_varint(size)) +
                 size);
  char* at = PutTag(message.data() + begin, tag, pbf_wire_type::length_delimited);
  return PutBytes(PutVarint(at, size), kName, name);
}

void AddBytesAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                  std::string_view bytes) {
  const auto field = static_cast<uint32_t>(type);
  PutBytes(BeginAttr(message, tag, name, BytesSize(field, bytes)), field, bytes);
}

void AddVarintAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                   uint64_t value) {
  const auto field = static_cast<uint32_t>(type);
  const size_t size = TagSize(field) + static_cast<size_t>(protozero::length_of_varint(value));
  PutVarint(PutTag(BeginAttr(message, tag, name, size), field, pbf_wire_type::varint), value);
}

// `value` has the size of the type, 4 or 8 bytes, in little-endian order.
template <typename Fixed>
void AddFixedAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                  Fixed value) {
  const auto field = static_cast<uint32_t>(type);
  constexpr auto kWire = sizeof(Fixed) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
  char* at = BeginAttr(message, tag, name, TagSize(field) + sizeof(Fixed));
  at = PutTag(at, field, kWire);
  for (size_t i = 0; i < sizeof(Fixed); ++i) {
    *at++ = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

template <typename Number>
bool Fits(int64_t value) {
  return std::in_range<Number>(value);
}

}  // namespace

std::optional<int64_t> AttrValue::AsInt64() const {
  if (form == Form::kSigned) return static_cast<int64_t>(bits);
  if (form != Form::kUnsigned || !std::in_range<int64_t>(bits)) return std::nullopt;
  return static_cast<int64_t>(bits);
}

std::optional<uint64_t> AttrValue::AsUint64() const {
  if (form == Form::kUnsigned) return bits;
  if (form != Form::kSigned || static_cast<int64_t>(bits) < 0) return std::nullopt;
  return bits;
}

void DecodeAttr(std::string_view bytes, AttrMessage& message) {
  message.name = {};
  message.value.type = ValueType::kNone;
  message.value.form = AttrValue::Form::kNone;
  message.plain = true;
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    const uint32_t tag = reader.tag();
    if (reader.tag_and_type() == Delimited(AttrField::kName)) {
      message.name = View(reader.get_view());
    } else if (tag >= static_cast<uint32_t>(ValueType::kDouble) &&
               tag <= static_cast<uint32_t>(ValueType::kBytesList)) {
      message.plain = message.plain && message.value.type == ValueType::kNone;
      DecodeValue(reader, message.value);
    } else {
      message.plain = false;
      reader.skip();
    }
  }
}

Extra ExtraOf(const AttrMessage& message, std::string_view field, TraceBuilder& builder) {
  const std::string_view text = message.value.text;
  const bool is_json = message.plain && message.value.form == AttrValue::Form::kText &&
                       message.name.starts_with(kJsonPrefix) && utf8::IsValid(message.name) &&
                       utf8::IsValid(text) && CheckJson(text).valid;
  if (is_json) {
    return {.key = builder.Intern(message.name.substr(kJsonPrefix.size())),
            .text = builder.Intern(text),
            .form = Extra::Form::kJson};
  }
  const std::string_view key = utf8::IsValid(message.name) ? message.name : "attr";
  return {
      .key = builder.Intern(key), .text = builder.Intern(field), .form = Extra::Form::kProtobuf};
}

std::string AttrLayout::Note() const {
  std::string field;
  protozero::pbf_writer writer(field);
  writer.add_bytes(kLayoutField, note_.data(), note_.size());
  return field;
}

void AddIntAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  switch (type) {
    case ValueType::kInt32:
      if (Fits<int32_t>(value)) return AddVarintAttr(message, tag, name, type, bits);
      break;
    case ValueType::kUint32:
      if (Fits<uint32_t>(value)) return AddVarintAttr(message, tag, name, type, bits);
      break;
    case ValueType::kUint64:
      if (value >= 0) return AddVarintAttr(message, tag, name, type, bits);
      break;
    case ValueType::kSint32:
      if (!Fits<int32_t>(value)) break;
      [[fallthrough]];
    case ValueType::kSint64:
      return AddVarintAttr(message, tag, name, type, protozero::encode_zigzag64(value));
    case ValueType::kFixed32:
      if (Fits<uint32_t>(value)) {
        return AddFixedAttr(message, tag, name, type, static_cast<uint32_t>(bits));
      }
      break;
    case ValueType::kFixed64:
      if (value >= 0) return AddFixedAttr(message, tag, name, type, bits);
      break;
    case ValueType::kSfixed32:
      if (Fits<int32_t>(value)) {
        return AddFixedAttr(message, tag, name, type, static_cast<uint32_t>(bits));
      }
      break;
    case ValueType::kSfixed64: return AddFixedAttr(message, tag, name, type, bits);
    case ValueType::kBool:
      if (value == 0 || value == 1) return AddVarintAttr(message, tag, name, type, bits);
      break;
    case ValueType::kNone:
    case ValueType::kDouble:
    case ValueType::kFloat:
    case ValueType::kInt64:
    case ValueType::kInt64List:
    case ValueType::kUint64List:
    case ValueType::kString:
    case ValueType::kBytesList: break;
  }
  AddVarintAttr(message, tag, name, ValueType::kInt64, bits);
}

void AddUintAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 uint64_t value) {
  if (std::in_range<int64_t>(value)) {
    AddIntAttr(message, tag, name, type, static_cast<int64_t>(value));
  } else if (type == ValueType::kFixed64) {
    AddFixedAttr(message, tag, name, type, value);
  } else {
    AddVarintAttr(message, tag, name, ValueType::kUint64, value);
  }
}

void AddTextAttr(std::string& message, uint32_t tag, std::string_view name, std::string_view text) {
  AddBytesAttr(message, tag, name, ValueType::kString, text);
}

void AddIntsAttr(std::string& message, uint32_t tag, std::string_view name, ValueType type,
                 std::span<const int64_t> ints) {
  std::string list;
  protozero::pbf_writer writer(list);
  writer.add_packed_int64(1, ints.begin(), ints.end());
  AddBytesAttr(message, tag, name, type, list);
}

std::optional<uint64_t> StatedUnsigned(const Trace& trace, NodeId node, std::string_view name) {
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kProtobuf || trace.text(extra.key) != name) continue;
    try {
      AttrMessage message;
      DecodeAttr(protobuf::Payload(trace.text(extra.text)), message);
      return message.value.AsUint64();
    } catch (const protozero::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace etude::chakra
