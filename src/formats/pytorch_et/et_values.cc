#include "src/formats/pytorch_et/et_values.h"

#include <charconv>
#include <limits>
#include <span>

#include "src/formats/json/json_text.h"
#include "src/formats/pytorch_et/argument_types.h"

namespace etude {
namespace {

constexpr size_t kAbsent = SIZE_MAX;

// Parses numbers that JSON lacks, as written by Python.
std::optional<double> BareDouble(std::string_view text) {
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// Walks the elements of two parallel arrays; `at` is kAbsent if the second one has none.
size_t FirstChild(const JsonTape& tape, size_t at) {
  const bool has = at != kAbsent && tape[at].kind == JsonTape::Kind::kArray && tape[at].count != 0;
  return has ? at + 1 : kAbsent;
}
size_t NextChild(const JsonTape& tape, size_t child, size_t parent) {
  if (child == kAbsent) return kAbsent;
  const size_t next = tape[child].next;
  return next < tape[parent].next ? next : kAbsent;
}

}  // namespace

void EtArguments::Clear() {
  values_.Clear();
  shapes_.Clear();
  types_.Clear();
  strides_.Clear();
  numbers_.Clear();
}

std::optional<ValueListId> EtArguments::Build(TraceBuilder& builder, const char* end) {
  builder_ = &builder;
  end_ = end;
  malformed_ = false;
  if (values_.empty()) return ValueListId::None();
  if (values_[0].kind != JsonTape::Kind::kArray) return std::nullopt;
  const size_t base = scratch_.size();
  Cursor cursor{.value = FirstChild(values_, 0),
                .shape = shapes_.empty() ? kAbsent : FirstChild(shapes_, 0),
                .stride = strides_.empty() ? kAbsent : FirstChild(strides_, 0),
                .number = numbers_.empty() ? kAbsent : FirstChild(numbers_, 0)};
  size_t type = types_.empty() ? kAbsent : FirstChild(types_, 0);
  while (cursor.value != kAbsent) {
    const bool typed = type != kAbsent && types_[type].kind == JsonTape::Kind::kString;
    scratch_.push_back(BuildValue(cursor, typed ? types_[type].text : std::string_view()));
    cursor.value = NextChild(values_, cursor.value, 0);
    cursor.shape = NextChild(shapes_, cursor.shape, 0);
    cursor.stride = NextChild(strides_, cursor.stride, 0);
    cursor.number = NextChild(numbers_, cursor.number, 0);
    type = NextChild(types_, type, 0);
  }
  const ValueListId list = builder.InternValues(std::span(scratch_).subspan(base));
  scratch_.resize(base);
  if (malformed_) return std::nullopt;
  return list;
}

StringId EtArguments::TypeId(std::string_view type) {
  return type.empty() ? StringId::None() : builder_->Intern(type);
}

Value EtArguments::BuildValue(const Cursor& at, std::string_view type) {
  const JsonTape::Token& token = values_[at.value];
  const StringId type_id = TypeId(type);
  if (token.kind != JsonTape::Kind::kArray) return BuildScalar(token, type, type_id);
  if (!IsTensorType(type)) return BuildList(at, type, type_id);
  const auto tensor = BuildTensor(at, type_id);
  return tensor ? Value::Tensor(type_id, *tensor) : Raw(token, type_id);
}

Value EtArguments::BuildScalar(const JsonTape::Token& token, std::string_view type,
                               StringId type_id) {
  switch (token.kind) {
    case JsonTape::Kind::kNull: return Value::None(type_id);
    case JsonTape::Kind::kTrue:
    case JsonTape::Kind::kFalse:
      if (!AdmitsBool(type)) return Raw(token, type_id);
      return Value::Bool(type_id, token.kind == JsonTape::Kind::kTrue);
    case JsonTape::Kind::kString: {
      const auto value = ValueOfText(token.text, type, type_id, *builder_);
      return value ? *value : Raw(token, type_id);
    }
    case JsonTape::Kind::kNumber:
    case JsonTape::Kind::kInvalid: return BuildNumber(token, type, type_id);
    case JsonTape::Kind::kArray:
    case JsonTape::Kind::kObject: break;
  }
  return Raw(token, type_id);
}

Value EtArguments::BuildNumber(const JsonTape::Token& token, std::string_view type,
                               StringId type_id) {
  if (AdmitsInt(type)) {
    if (const auto number = JsonInt(token.text)) return Value::Int(type_id, *number);
  }
  if (AdmitsDouble(type)) {
    if (const auto number = BareDouble(token.text)) {
      builder_->stats().Count(Stat::kNonFiniteNumber);
      return Value::Double(type_id, *number);
    }
    double number = 0;
    const char* text_end = token.text.data() + token.text.size();
    const auto [parsed, error] = std::from_chars(token.text.data(), text_end, number);
    const bool whole = error == std::errc() && parsed == text_end;
    if (whole && CheckJson(token.text).valid) return Value::Double(type_id, number);
    if (error == std::errc::result_out_of_range) builder_->stats().Count(Stat::kNonFiniteNumber);
  }
  return Raw(token, type_id);
}

Value EtArguments::BuildList(const Cursor& at, std::string_view type, StringId type_id) {
  const size_t base = scratch_.size();
  Cursor child{.value = FirstChild(values_, at.value),
               .shape = FirstChild(shapes_, at.shape),
               .stride = FirstChild(strides_, at.stride),
               .number = FirstChild(numbers_, at.number)};
  TypeList types(type);
  while (child.value != kAbsent) {
    const Value value = BuildValue(child, types.Next());
    scratch_.push_back(value);
    child.value = NextChild(values_, child.value, at.value);
    child.shape = NextChild(shapes_, child.shape, at.shape);
    child.stride = NextChild(strides_, child.stride, at.stride);
    child.number = NextChild(numbers_, child.number, at.number);
  }
  const ValueListId list = builder_->InternValues(std::span(scratch_).subspan(base));
  scratch_.resize(base);
  return Value::List(type_id, list);
}

// [tensor, storage, offset, elements, bytes of an element, device]; old files lack the device.
std::optional<TensorId> EtArguments::BuildTensor(const Cursor& at, StringId type_id) {
  const JsonTape::Token& array = values_[at.value];
  if (array.count != 5 && array.count != 6) return std::nullopt;
  const size_t first = at.value + 1;
  for (size_t i = 0; i < 5; ++i) {
    if (values_[first + i].kind != JsonTape::Kind::kNumber) return std::nullopt;
  }
  const auto tensor = JsonUint(values_[first].text);
  const auto storage = JsonUint(values_[first + 1].text);
  const auto offset = JsonInt(values_[first + 2].text);
  const auto numel = JsonInt(values_[first + 3].text);
  const auto element_bytes = JsonInt(values_[first + 4].text);
  if (!tensor || !storage || !offset || !numel || !element_bytes) return std::nullopt;
  TensorUse use;
  use.tensor = *tensor;
  use.storage = *storage;
  use.offset = *offset;
  use.numel = *numel;
  use.element_bytes = *element_bytes;
  use.type = type_id;
  use.shape = BuildInts(shapes_, at.shape);
  use.strides = BuildInts(strides_, at.stride);
  SetNumber(at.number, use);
  if (array.count == 6) {
    const JsonTape::Token& device = values_[first + 5];
    if (device.kind != JsonTape::Kind::kString) return std::nullopt;
    use.device = builder_->Intern(device.text);
  }
  return builder_->InternTensor(use);
}

// [kind, number], or nothing.
void EtArguments::SetNumber(size_t index, TensorUse& use) {
  if (index == kAbsent || numbers_[index].kind != JsonTape::Kind::kArray) return;
  if (numbers_[index].count == 0) return;
  const auto part = [&](size_t i) {
    const JsonTape::Token& token = numbers_[index + 1 + i];
    return token.kind == JsonTape::Kind::kNumber ? JsonInt(token.text) : std::nullopt;
  };
  if (numbers_[index].count == 2 && part(0) && part(1)) {
    for (const ValueKind kind : {ValueKind::kBool, ValueKind::kInt, ValueKind::kDouble}) {
      if (*part(0) != static_cast<int64_t>(kind)) continue;
      use.number_kind = kind;
      use.number = static_cast<uint64_t>(*part(1));
      return;
    }
  }
  builder_->stats().Count(Stat::kUnknownValue);
}

IntListId EtArguments::BuildInts(const JsonTape& tape, size_t index) {
  if (index == kAbsent || tape[index].kind != JsonTape::Kind::kArray) return IntListId::None();
  ints_.clear();
  for (uint32_t i = 0; i < tape[index].count; ++i) {
    // Elements of other kinds may span several tokens, but then it is not a list of numbers.
    const JsonTape::Token& token = tape[index + 1 + i];
    const auto number = token.kind == JsonTape::Kind::kNumber ? JsonInt(token.text) : std::nullopt;
    if (!number) {
      builder_->stats().Count(Stat::kUnknownValue);
      return IntListId::None();
    }
    ints_.push_back(*number);
  }
  return builder_->InternInts(ints_);
}

Value EtArguments::Raw(const JsonTape::Token& token, StringId type_id) {
  builder_->stats().Count(Stat::kUnknownValue);
  const std::string_view rest(token.raw, static_cast<size_t>(end_ - token.raw));
  const auto value = JsonValueAt(rest);
  if (!value) {
    malformed_ = true;
    return Value::None(type_id);
  }
  builder_->stats().Count(Stat::kNonFiniteNumber, value->non_finite);
  return Value::Text(ValueKind::kRaw, type_id, builder_->Intern(value->text));
}

}  // namespace etude
