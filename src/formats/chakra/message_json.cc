#include "src/formats/chakra/message_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <vector>

#include "src/base/text/json_text.h"
#include "src/base/text/utf8.h"

namespace etude::chakra {
namespace {

enum class Kind : uint8_t {
  kDouble,
  kFloat,
  kInt32,
  kInt64,
  kUint32,
  kUint64,
  kSint32,
  kSint64,
  kFixed32,
  kFixed64,
  kSfixed32,
  kSfixed64,
  kBool,
  kString,
  kBytes,
  kNodeType,
  kMessage,
};

// Presence of a field: kPlain fields are omitted if zero.
enum class Label : uint8_t { kPlain, kRepeated, kOneOf };

struct Field {
  uint32_t number;
  std::string_view json_name;
  Kind kind;
  Label label = Label::kPlain;
  std::span<const Field> message = {};  // fields of kMessage
};

// Fields of the list of each kind; AttributeProto has a message type for each.
template <Kind kind>
constexpr auto kListOf = std::to_array<Field>({{1, "values", kind, Label::kRepeated}});

constexpr auto kAttributeFields = std::to_array<Field>({
    {1, "name", Kind::kString},
    {2, "docString", Kind::kString},
    {3, "doubleVal", Kind::kDouble, Label::kOneOf},
    {4, "doubleList", Kind::kMessage, Label::kOneOf, kListOf<Kind::kDouble>},
    {5, "floatVal", Kind::kFloat, Label::kOneOf},
    {6, "floatList", Kind::kMessage, Label::kOneOf, kListOf<Kind::kFloat>},
    {7, "int32Val", Kind::kInt32, Label::kOneOf},
    {8, "int32List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kInt32>},
    {9, "int64Val", Kind::kInt64, Label::kOneOf},
    {10, "int64List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kInt64>},
    {11, "uint32Val", Kind::kUint32, Label::kOneOf},
    {12, "uint32List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kUint32>},
    {13, "uint64Val", Kind::kUint64, Label::kOneOf},
    {14, "uint64List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kUint64>},
    {15, "sint32Val", Kind::kSint32, Label::kOneOf},
    {16, "sint32List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kSint32>},
    {17, "sint64Val", Kind::kSint64, Label::kOneOf},
    {18, "sint64List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kSint64>},
    {19, "fixed32Val", Kind::kFixed32, Label::kOneOf},
    {20, "fixed32List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kFixed32>},
    {21, "fixed64Val", Kind::kFixed64, Label::kOneOf},
    {22, "fixed64List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kFixed64>},
    {23, "sfixed32Val", Kind::kSfixed32, Label::kOneOf},
    {24, "sfixed32List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kSfixed32>},
    {25, "sfixed64Val", Kind::kSfixed64, Label::kOneOf},
    {26, "sfixed64List", Kind::kMessage, Label::kOneOf, kListOf<Kind::kSfixed64>},
    {27, "boolVal", Kind::kBool, Label::kOneOf},
    {28, "boolList", Kind::kMessage, Label::kOneOf, kListOf<Kind::kBool>},
    {29, "stringVal", Kind::kString, Label::kOneOf},
    {30, "stringList", Kind::kMessage, Label::kOneOf, kListOf<Kind::kString>},
    {31, "bytesVal", Kind::kBytes, Label::kOneOf},
    {32, "bytesList", Kind::kMessage, Label::kOneOf, kListOf<Kind::kBytes>},
});
constexpr auto kMetadataFields = std::to_array<Field>({
    {1, "version", Kind::kString},
    {2, "attr", Kind::kMessage, Label::kRepeated, kAttributeFields},
});
constexpr auto kIoFields = std::to_array<Field>({
    {1, "values", Kind::kString},
    {2, "shapes", Kind::kString},
    {3, "types", Kind::kString},
});
constexpr auto kNodeFields = std::to_array<Field>({
    {1, "id", Kind::kUint64},
    {2, "name", Kind::kString},
    {3, "type", Kind::kNodeType},
    {4, "ctrlDeps", Kind::kUint64, Label::kRepeated},
    {5, "dataDeps", Kind::kUint64, Label::kRepeated},
    {6, "startTimeMicros", Kind::kUint64},
    {7, "durationMicros", Kind::kUint64},
    {8, "inputs", Kind::kMessage, Label::kPlain, kIoFields},
    {9, "outputs", Kind::kMessage, Label::kPlain, kIoFields},
    {10, "attr", Kind::kMessage, Label::kRepeated, kAttributeFields},
});
constexpr auto kNodeTypes = std::to_array<std::string_view>(
    {"INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",
     "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"});

// A field's value: a number's bits, or the bytes of a text or message. The pieces of a split
// message, which are merged, are consecutive.
struct Value {
  const Field* field = nullptr;
  uint64_t bits = 0;
  std::string_view bytes;
};

bool IsText(Kind kind) { return kind == Kind::kString || kind == Kind::kBytes; }

protozero::pbf_wire_type WireOf(Kind kind) {
  switch (kind) {
    case Kind::kDouble:
    case Kind::kFixed64:
    case Kind::kSfixed64: return protozero::pbf_wire_type::fixed64;
    case Kind::kFloat:
    case Kind::kFixed32:
    case Kind::kSfixed32: return protozero::pbf_wire_type::fixed32;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kMessage: return protozero::pbf_wire_type::length_delimited;
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kUint32:
    case Kind::kUint64:
    case Kind::kSint32:
    case Kind::kSint64:
    case Kind::kBool:
    case Kind::kNodeType: return protozero::pbf_wire_type::varint;
  }
  return protozero::pbf_wire_type::unknown;
}

uint64_t ReadBits(protozero::pbf_reader& reader, Kind kind) {
  switch (WireOf(kind)) {
    case protozero::pbf_wire_type::fixed64: return reader.get_fixed64();
    case protozero::pbf_wire_type::fixed32: return reader.get_fixed32();
    default: return reader.get_uint64();
  }
}

class JsonWriter {
 public:
  explicit JsonWriter(ByteBuffer& out) : out_(out) {}

  // Returns false if a text is not UTF-8. Throws protozero's exceptions.
  bool Message(std::string_view bytes, std::span<const Field> fields, size_t level) {
    std::vector<Value> values;
    Read(bytes, fields, values);
    std::ranges::stable_sort(values, {}, [](const Value& value) { return value.field->number; });
    out_.Append('{');
    bool first = true;
    for (size_t i = 0; i < values.size();) {
      const Field& field = *values[i].field;
      size_t end = i + 1;
      while (end < values.size() && values[end].field == &field) ++end;
      const std::span<const Value> all = std::span(values).subspan(i, end - i);
      i = end;
      if (!IsPresent(field, all)) continue;
      if (!first) out_.Append(',');
      first = false;
      Newline(level + 1);
      out_.Append('"');
      out_.Append(field.json_name);
      out_.Append("\": ");
      if (!FieldValue(field, all, level + 1)) return false;
    }
    if (!first) Newline(level);
    out_.Append('}');
    return true;
  }

 private:
  void Newline(size_t level) {
    out_.Append('\n');
    out_.AppendSpaces(2 * level);
  }

  static void Read(std::string_view bytes, std::span<const Field> fields,
                   std::vector<Value>& values) {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      const auto field = std::ranges::find(fields, reader.tag(), &Field::number);
      if (field == fields.end()) {
        reader.skip();
        continue;
      }
      const bool is_wire = reader.wire_type() == WireOf(field->kind);
      if (is_wire) {
        if (field->label == Label::kOneOf) {
          std::erase_if(values, [&](const Value& value) {
            return value.field->label == Label::kOneOf &&
                   (value.field != &*field || field->kind != Kind::kMessage);
          });
        }
        Value& value = values.emplace_back(Value{.field = &*field});
        if (IsText(field->kind) || field->kind == Kind::kMessage) {
          const protozero::data_view view = reader.get_view();
          value.bytes = {view.data(), view.size()};
        } else {
          value.bits = ReadBits(reader, field->kind);
        }
      } else if (field->label == Label::kRepeated &&
                 reader.wire_type() == protozero::pbf_wire_type::length_delimited) {
        const protozero::data_view view = reader.get_view();
        ReadPacked({view.data(), view.size()}, *field, values);
      } else {
        reader.skip();
      }
    }
  }

  // Converts packed numbers to single ones with a tag each.
  static void ReadPacked(std::string_view bytes, const Field& field, std::vector<Value>& values) {
    const char* at = bytes.data();
    const char* end = at + bytes.size();
    while (at != end) {
      uint64_t bits = 0;
      switch (WireOf(field.kind)) {
        case protozero::pbf_wire_type::varint: bits = protozero::decode_varint(&at, end); break;
        case protozero::pbf_wire_type::fixed64: bits = TakeFixed<uint64_t>(at, end); break;
        default: bits = TakeFixed<uint32_t>(at, end);
      }
      values.push_back({.field = &field, .bits = bits});
    }
  }

  template <typename T>
  static T TakeFixed(const char*& at, const char* end) {
    T value = 0;
    if (end - at < static_cast<ptrdiff_t>(sizeof value)) throw protozero::end_of_buffer_exception();
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }

  static bool IsPresent(const Field& field, std::span<const Value> values) {
    if (field.label != Label::kPlain || field.kind == Kind::kMessage) return true;
    return IsText(field.kind) ? !values.back().bytes.empty() : values.back().bits != 0;
  }

  bool FieldValue(const Field& field, std::span<const Value> values, size_t level) {
    if (field.label != Label::kRepeated) {
      if (field.kind != Kind::kMessage || values.size() == 1) return One(values.back(), level);
      std::string merged;
      for (const Value& value : values) merged += value.bytes;
      return Message(merged, field.message, level);
    }
    out_.Append('[');
    bool first = true;
    for (const Value& value : values) {
      if (!first) out_.Append(',');
      first = false;
      Newline(level + 1);
      if (!One(value, level + 1)) return false;
    }
    Newline(level);
    out_.Append(']');
    return true;
  }

  bool One(const Value& value, size_t level) {
    const uint64_t bits = value.bits;
    switch (value.field->kind) {
      case Kind::kMessage: return Message(value.bytes, value.field->message, level);
      case Kind::kString: return Text(value.bytes);
      case Kind::kBytes: Base64(value.bytes); break;
      case Kind::kDouble: Real(std::bit_cast<double>(bits)); break;
      case Kind::kFloat: ShortestReal(std::bit_cast<float>(static_cast<uint32_t>(bits))); break;
      case Kind::kInt32:
      case Kind::kSfixed32: Format("{}", static_cast<int32_t>(bits)); break;
      case Kind::kUint32:
      case Kind::kFixed32: Format("{}", static_cast<uint32_t>(bits)); break;
      case Kind::kSint32:
        Format("{}", protozero::decode_zigzag32(static_cast<uint32_t>(bits)));
        break;
      case Kind::kInt64:
      case Kind::kSfixed64: Format("\"{}\"", static_cast<int64_t>(bits)); break;
      case Kind::kUint64:
      case Kind::kFixed64: Format("\"{}\"", bits); break;
      case Kind::kSint64: Format("\"{}\"", protozero::decode_zigzag64(bits)); break;
      case Kind::kBool: out_.Append(bits != 0 ? "true" : "false"); break;
      case Kind::kNodeType: {
        const auto number = static_cast<int32_t>(bits);
        if (number >= 0 && static_cast<size_t>(number) < kNodeTypes.size()) {
          Format("\"{}\"", kNodeTypes[static_cast<size_t>(number)]);
        } else {
          Format("{}", number);
        }
        break;
      }
    }
    return true;
  }

  template <typename T>
  void Format(fmt::format_string<const T&> format, const T& value) {
    std::array<char, 40> buffer;
    const auto end = fmt::format_to_n(buffer.data(), buffer.size(), format, value).out;
    out_.Append({buffer.data(), static_cast<size_t>(end - buffer.data())});
  }

  bool Text(std::string_view bytes) {
    if (!utf8::IsValid(bytes)) return false;
    out_.Append('"');
    AppendJsonText(bytes, out_);
    out_.Append('"');
    return true;
  }

  void Base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out_.Append('"');
    for (size_t i = 0; i < bytes.size(); i += 3) {
      uint32_t group = 0;
      const size_t count = std::min<size_t>(3, bytes.size() - i);
      for (size_t j = 0; j < 3; ++j) {
        group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0U);
      }
      for (size_t j = 0; j < 4; ++j) {
        out_.Append(j <= count ? kDigits[(group >> (18 - 6 * j)) & 63] : '=');
      }
    }
    out_.Append('"');
  }

  void Real(double value) {
    // Values that JSON does not support are strings.
    const bool is_special = value != value || value - value != 0;
    if (is_special) out_.Append('"');
    AppendJsonFloat(value, out_);
    if (is_special) out_.Append('"');
  }

  void ShortestReal(float value) {
    double shortest = static_cast<double>(value);
    if (value - value == 0) {
      for (int digits = 6; digits <= 9; ++digits) {
        shortest = std::strtod(fmt::format("{:.{}g}", static_cast<double>(value), digits).c_str(),
                               nullptr);
        if (static_cast<float>(shortest) == value) break;
      }
    }
    Real(shortest);
  }

  ByteBuffer& out_;
};

bool AppendMessage(std::string_view message, std::span<const Field> fields, size_t level,
                   ByteBuffer& out) {
  try {
    return JsonWriter(out).Message(message, fields, level);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

bool AppendMetadataJson(std::string_view message, size_t level, ByteBuffer& out) {
  return AppendMessage(message, kMetadataFields, level, out);
}
bool AppendNodeJson(std::string_view message, size_t level, ByteBuffer& out) {
  return AppendMessage(message, kNodeFields, level, out);
}

}  // namespace etude::chakra
