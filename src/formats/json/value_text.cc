#include "src/formats/json/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/formats/json/json_text.h"
#include "src/formats/pytorch_et/argument_types.h"

namespace etude {
namespace {

// Appends items of a literal in either style, separated by ", " as in both Python tools.
void AppendItems(const std::vector<PyItem>& items, uint32_t begin, uint32_t end, TextStyle style,
                 std::string& out) {
  const bool python = style == TextStyle::kPython;
  std::vector<uint32_t> list_ends;
  bool first = true;
  for (uint32_t i = begin; i < end || !list_ends.empty();) {
    if (!list_ends.empty() && list_ends.back() == i) {
      out.push_back(']');
      list_ends.pop_back();
      first = false;
      continue;
    }
    if (!first) out += ", ";
    first = false;
    const PyItem& item = items[i++];
    switch (item.kind) {
      case PyItem::Kind::kNone: out += python ? "None" : "null"; break;
      case PyItem::Kind::kBool:
        out += item.flag ? (python ? "True" : "true") : (python ? "False" : "false");
        break;
      case PyItem::Kind::kInt: out += std::to_string(item.integer); break;
      case PyItem::Kind::kDouble:
        if (!python && !std::isfinite(item.real)) {
          out += std::isnan(item.real) ? "NaN" : item.real < 0 ? "-Infinity" : "Infinity";
        } else {
          AppendPyDouble(item.real, out);
        }
        break;
      case PyItem::Kind::kBigInt: out += item.text; break;
      case PyItem::Kind::kString:
        if (python) {
          AppendPyString(item.text, out);
        } else {
          AppendJsonString(item.text, out);
        }
        break;
      case PyItem::Kind::kList:
        out.push_back('[');
        list_ends.push_back(item.end);
        first = true;
        break;
    }
  }
}

void AppendText(std::string_view text, TextStyle style, std::string& out) {
  if (style == TextStyle::kPython) {
    AppendPyString(text, out);
  } else {
    AppendJsonString(text, out);
  }
}

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

// Appends a value kept as JSON text; text that the literal parser does not support (objects) stays
// unchanged.
void AppendRaw(std::string_view json, TextStyle style, std::string& out) {
  if (style == TextStyle::kPython) {
    PyLiteral literal;
    if (literal.Parse(json, std::numeric_limits<uint32_t>::max())) {
      AppendItems(literal.items(), 0, static_cast<uint32_t>(literal.items().size()), style, out);
      return;
    }
  }
  out += json;
}

void AppendDouble(double value, TextStyle style, std::string& out) {
  if (std::isfinite(value)) {
    AppendPyDouble(value, out);
    return;
  }
  // The observer writes values that JSON lacks as text.
  std::string text;
  AppendPyDouble(value, text);
  AppendText(text, style, out);
}

void AppendInts(std::span<const int64_t> ints, std::string& out) {
  out.push_back('[');
  bool first = true;
  for (const int64_t number : ints) {
    if (!first) out += ", ";
    first = false;
    AppendNumber(number, out);
  }
  out.push_back(']');
}

// Appends "[", the output of `append` for each value, and "]".
template <typename Append>
void AppendList(std::span<const Value> values, std::string& out, Append append) {
  out.push_back('[');
  bool first = true;
  for (const Value& value : values) {
    if (!first) out += ", ";
    first = false;
    append(value);
  }
  out.push_back(']');
}

template <typename Tables>
void AppendTensor(const Tables& tables, const TensorUse& use, TextStyle style, std::string& out) {
  out.push_back('[');
  for (const uint64_t id : {use.tensor, use.storage}) {
    AppendNumber(id, out);
    out += ", ";
  }
  for (const int64_t number : {use.offset, use.numel, use.element_bytes}) {
    AppendNumber(number, out);
    out += ", ";
  }
  AppendText(tables.text(use.device), style, out);
  out.push_back(']');
}

template <typename Tables, typename IntsOf>
void AppendIntLists(const Tables& tables, std::span<const Value> values, IntsOf ints_of,
                    std::string& out) {
  AppendList(values, out, [&](const Value& value) {
    if (value.kind == ValueKind::kTensor) {
      AppendInts(tables.ints(ints_of(tables.tensor(value.as_tensor()))), out);
    } else if (value.kind == ValueKind::kList) {
      AppendIntLists(tables, tables.values(value.as_list()), ints_of, out);
    } else {
      out += "[]";
    }
  });
}

}  // namespace

template <typename Tables>
void AppendValues(const Tables& tables, std::span<const Value> values, TextStyle style,
                  std::string& out) {
  const bool python = style == TextStyle::kPython;
  AppendList(values, out, [&](const Value& value) {
    switch (value.kind) {
      case ValueKind::kNone: AppendText("<None>", style, out); break;
      case ValueKind::kBool:
        out += value.as_bool() ? (python ? "True" : "true") : (python ? "False" : "false");
        break;
      case ValueKind::kInt: AppendNumber(value.as_int(), out); break;
      case ValueKind::kDouble: AppendDouble(value.as_double(), style, out); break;
      case ValueKind::kString:
      case ValueKind::kDevice:
      case ValueKind::kOpaque: AppendText(tables.text(value.as_text()), style, out); break;
      case ValueKind::kTensor:
        AppendTensor(tables, tables.tensor(value.as_tensor()), style, out);
        break;
      case ValueKind::kList:
        AppendValues(tables, tables.values(value.as_list()), style, out);
        break;
      case ValueKind::kRaw: AppendRaw(tables.text(value.as_text()), style, out); break;
    }
  });
}

template <typename Tables>
void AppendShapes(const Tables& tables, std::span<const Value> values, std::string& out) {
  AppendIntLists(
      tables, values, [](const TensorUse& use) { return use.shape; }, out);
}

template <typename Tables>
void AppendStrides(const Tables& tables, std::span<const Value> values, std::string& out) {
  AppendIntLists(
      tables, values, [](const TensorUse& use) { return use.strides; }, out);
}

template <typename Tables>
void AppendNumbers(const Tables& tables, std::span<const Value> values, std::string& out) {
  AppendList(values, out, [&](const Value& value) {
    if (value.kind == ValueKind::kList) {
      AppendNumbers(tables, tables.values(value.as_list()), out);
      return;
    }
    out += '[';
    if (HasNumbers(tables, std::span(&value, 1))) {
      const TensorUse& use = tables.tensor(value.as_tensor());
      AppendNumber(static_cast<int64_t>(use.number_kind), out);
      out += ", ";
      AppendNumber(static_cast<int64_t>(use.number), out);
    }
    out += ']';
  });
}

template <typename Tables>
bool HasNumbers(const Tables& tables, std::span<const Value> values) {
  return std::ranges::any_of(values, [&](const Value& value) {
    if (value.kind == ValueKind::kList) return HasNumbers(tables, tables.values(value.as_list()));
    return value.kind == ValueKind::kTensor &&
           tables.tensor(value.as_tensor()).number_kind != ValueKind::kNone;
  });
}

template <typename Tables>
void AppendTypes(const Tables& tables, std::span<const Value> values, TextStyle style,
                 std::string& out) {
  AppendList(values, out,
             [&](const Value& value) { AppendText(tables.text(value.type), style, out); });
}

template <typename Tables>
bool HasStrides(const Tables& tables, std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.kind == ValueKind::kTensor && tables.tensor(value.as_tensor()).strides) return true;
    if (value.kind == ValueKind::kList && HasStrides(tables, tables.values(value.as_list()))) {
      return true;
    }
  }
  return false;
}

#define ETUDE_INSTANTIATE(Tables)                                                             \
  template void AppendValues(const Tables&, std::span<const Value>, TextStyle, std::string&); \
  template void AppendShapes(const Tables&, std::span<const Value>, std::string&);            \
  template void AppendStrides(const Tables&, std::span<const Value>, std::string&);           \
  template void AppendTypes(const Tables&, std::span<const Value>, TextStyle, std::string&);  \
  template bool HasStrides(const Tables&, std::span<const Value>);                            \
  template void AppendNumbers(const Tables&, std::span<const Value>, std::string&);           \
  template bool HasNumbers(const Tables&, std::span<const Value>);
ETUDE_INSTANTIATE(Trace)
ETUDE_INSTANTIATE(TraceBuilder)
#undef ETUDE_INSTANTIATE

IoParser::Cursor IoParser::Cursor::Elements() const {
  const PyItem* item = get();
  if (item == nullptr || item->kind != PyItem::Kind::kList) return {items, 0, 0};
  return {items, index + 1, item->end};
}

IntListId IoParser::MakeInts(const Cursor& list) {
  const PyItem* item = list.get();
  if (item == nullptr || item->kind != PyItem::Kind::kList) return IntListId::None();
  ints_.clear();
  for (Cursor at = list.Elements(); at.get() != nullptr; at.Next()) {
    if (at.get()->kind != PyItem::Kind::kInt) {
      builder_->stats().Count(Stat::kUnknownValue);
      return IntListId::None();
    }
    ints_.push_back(at.get()->integer);
  }
  return builder_->InternInts(ints_);
}

// [tensor, storage, offset, elements, bytes of an element, device]; old files lack the device.
std::optional<TensorId> IoParser::MakeTensor(const Cursor& value, const Cursor& shape,
                                             const Cursor& stride, StringId type_id) {
  std::array<int64_t, 5> numbers{};
  Cursor part = value.Elements();
  for (int64_t& number : numbers) {
    const PyItem* item = part.get();
    if (item == nullptr || item->kind != PyItem::Kind::kInt) return std::nullopt;
    number = item->integer;
    part.Next();
  }
  if (numbers[0] < 0 || numbers[1] < 0) return std::nullopt;
  TensorUse use;
  use.tensor = static_cast<uint64_t>(numbers[0]);
  use.storage = static_cast<uint64_t>(numbers[1]);
  use.offset = numbers[2];
  use.numel = numbers[3];
  use.element_bytes = numbers[4];
  use.type = type_id;
  if (const PyItem* device = part.get()) {
    if (device->kind != PyItem::Kind::kString) return std::nullopt;
    use.device = builder_->Intern(device->text);
    part.Next();
  }
  if (part.get() != nullptr) return std::nullopt;
  use.shape = MakeInts(shape);
  use.strides = MakeInts(stride);
  return builder_->InternTensor(use);
}

Value IoParser::MakeList(const Cursor& value, const Cursor& shape, const Cursor& stride,
                         std::string_view type, StringId type_id) {
  std::vector<Value> elements;
  TypeList types(type);
  Cursor element_shape = shape.Elements();
  Cursor element_stride = stride.Elements();
  for (Cursor at = value.Elements(); at.get() != nullptr; at.Next()) {
    elements.push_back(MakeValue(at, element_shape, element_stride, types.Next()));
    element_shape.Next();
    element_stride.Next();
  }
  return Value::List(type_id, builder_->InternValues(elements));
}

std::optional<Value> IoParser::MakeScalar(const PyItem& item, std::string_view type,
                                          StringId type_id) {
  switch (item.kind) {
    case PyItem::Kind::kNone: return Value::None(type_id);
    case PyItem::Kind::kBool:
      if (!AdmitsBool(type)) return std::nullopt;
      return Value::Bool(type_id, item.flag);
    case PyItem::Kind::kInt:
      if (AdmitsInt(type)) return Value::Int(type_id, item.integer);
      if (!AdmitsDouble(type)) return std::nullopt;
      return Value::Double(type_id, static_cast<double>(item.integer));
    case PyItem::Kind::kDouble:
      if (!AdmitsDouble(type)) return std::nullopt;
      if (!std::isfinite(item.real)) builder_->stats().Count(Stat::kNonFiniteNumber);
      return Value::Double(type_id, item.real);
    case PyItem::Kind::kString: return ValueOfText(item.text, type, type_id, *builder_);
    case PyItem::Kind::kBigInt:
    case PyItem::Kind::kList: break;
  }
  return std::nullopt;
}

Value IoParser::Raw(const Cursor& value, StringId type_id) {
  builder_->stats().Count(Stat::kUnknownValue);
  std::string json;
  AppendItems(*value.items, value.index, value.get()->end, TextStyle::kJson, json);
  return Value::Text(ValueKind::kRaw, type_id, builder_->Intern(json));
}

Value IoParser::MakeValue(const Cursor& value, const Cursor& shape, const Cursor& stride,
                          std::string_view type) {
  const PyItem& item = *value.get();
  const StringId type_id = type.empty() ? StringId::None() : builder_->Intern(type);
  if (item.kind != PyItem::Kind::kList) {
    const auto scalar = MakeScalar(item, type, type_id);
    return scalar ? *scalar : Raw(value, type_id);
  }
  if (!IsTensorType(type)) return MakeList(value, shape, stride, type, type_id);
  const auto tensor = MakeTensor(value, shape, stride, type_id);
  return tensor ? Value::Tensor(type_id, *tensor) : Raw(value, type_id);
}

std::optional<ValueListId> IoParser::Parse(const IoText& text, TraceBuilder& builder) {
  builder_ = &builder;
  const auto parse = [&](std::string_view source, PyLiteral& literal) {
    return literal.Parse(source, depth_) && literal.items()[0].kind == PyItem::Kind::kList;
  };
  const bool has_strides = !text.strides.empty();
  if (!parse(text.values, values_) || !parse(text.shapes, shapes_) || !parse(text.types, types_) ||
      (has_strides && !parse(text.strides, strides_))) {
    return std::nullopt;
  }
  const auto elements = [](const PyLiteral& literal) {
    return Cursor{&literal.items(), 1, literal.items()[0].end};
  };
  Cursor shape = elements(shapes_);
  Cursor type = elements(types_);
  Cursor stride = has_strides ? elements(strides_) : Cursor{};
  std::vector<Value> values;
  for (Cursor value = elements(values_); value.get() != nullptr; value.Next()) {
    const PyItem* type_item = type.get();
    const bool typed = type_item != nullptr && type_item->kind == PyItem::Kind::kString;
    values.push_back(MakeValue(value, shape, stride, typed ? type_item->text : std::string_view()));
    shape.Next();
    type.Next();
    stride.Next();
  }
  return builder.InternValues(values);
}

}  // namespace etude
