#include "src/formats/native/capture_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/formats/pytorch_et/argument_types.h"
#include "src/trace/words/distributed_value.h"

namespace etude {
namespace {

using capture::RecordView;
using capture::Tag;
namespace flag = capture::tensor_flag;

}  // namespace

std::optional<ValueListId> CaptureValues::Read(RecordView& records) {
  group_.reset();
  ranges_.clear();
  statistics_.clear();
  index_values_.clear();
  tensors_ = 0;
  const uint64_t count = records.Varint();
  if (count > records.left()) return std::nullopt;
  std::vector<Value> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::optional<Value> value = ReadValue(records, 1);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return builder_.InternValues(values);
}

std::optional<Value> CaptureValues::ReadValue(RecordView& records, size_t depth) {
  if (depth > limits_.depth) return std::nullopt;
  std::optional<Value> value;
  switch (static_cast<Tag>(records.Byte())) {
    case Tag::kNone: value = Value::None(Type("None")); break;
    case Tag::kFalse: value = Value::Bool(Type("Bool"), false); break;
    case Tag::kTrue: value = Value::Bool(Type("Bool"), true); break;
    case Tag::kInt: value = Value::Int(Type("Int"), records.Signed()); break;
    case Tag::kDouble:
      value = Value::Double(Type("Double"), std::bit_cast<double>(records.Fixed64()));
      break;
    case Tag::kComplex: {
      const auto real = std::bit_cast<double>(records.Fixed64());
      const auto imaginary = std::bit_cast<double>(records.Fixed64());
      value = Opaque(kComplexType, ComplexText({real, imaginary}));
      break;
    }
    case Tag::kString:
      value = Value::Text(ValueKind::kString, Type("String"), builder_.Intern(records.Text()));
      break;
    case Tag::kDevice:
      if (const auto device = ReadString(records)) {
        value = Value::Text(ValueKind::kDevice, Type("Device"), *device);
      }
      break;
    case Tag::kTensor: return ReadTensor(records);
    case Tag::kUndefinedTensor: {
      ++tensors_;
      const StringId type = Type("Tensor(nullptr (uninitialized))");
      TensorUse use;
      use.type = type;
      use.device = builder_.Intern("");
      use.shape = use.strides = builder_.InternInts({});
      value = Value::Tensor(type, builder_.InternTensor(use));
      break;
    }
    case Tag::kList: return ReadList(records, "GenericList", depth);
    case Tag::kTuple: return ReadList(records, "Tuple", depth);
    case Tag::kGenerator: {
      const auto device = ReadString(records);
      const uint64_t seed = records.Varint();
      if (!device) return std::nullopt;
      value = Opaque("Generator", fmt::format("<Generator> {} {}", builder_.text(*device), seed));
      break;
    }
    case Tag::kProcessGroup: value = ReadGroup(records, false); break;
    case Tag::kProcessGroupWithRanks: value = ReadGroup(records, true); break;
    case Tag::kReduceOp: value = Opaque("Object", ReductionText(records.Varint())); break;
    case Tag::kOpaque:
    case Tag::kSymbolic: {
      const std::string_view name = records.Text();
      value = Opaque(name, fmt::format("<{}>", name));
      break;
    }
  }
  if (records.failed()) return std::nullopt;
  return value;
}

Value CaptureValues::Opaque(std::string_view type, std::string_view text) {
  return Value::Text(ValueKind::kOpaque, Type(type), builder_.Intern(text));
}

std::optional<StringId> CaptureValues::ReadString(RecordView& records) {
  const uint64_t number = records.Varint();
  if (records.failed() || number >= strings_.size()) return std::nullopt;
  return strings_[number];
}

std::optional<Value> CaptureValues::ReadList(RecordView& records, std::string_view word,
                                             size_t depth) {
  const uint64_t count = records.Varint();
  if (count > records.left()) return std::nullopt;
  std::vector<Value> values;
  values.reserve(count);
  std::string type = fmt::format("{}[", word);
  for (uint64_t i = 0; i < count; ++i) {
    const std::optional<Value> value = ReadValue(records, depth + 1);
    if (!value) return std::nullopt;
    if (i != 0) type += ',';
    type += builder_.text(value->type);
    values.push_back(*value);
  }
  return Value::List(Type(type + "]"), builder_.InternValues(values));
}

std::optional<Value> CaptureValues::ReadGroup(RecordView& records, bool with_ranks) {
  ProcessGroup group;
  group.name = builder_.Intern(records.Text());
  group.description = builder_.Intern(records.Text());
  group.backend = builder_.Intern(records.Text());
  records.Varint();  // this process's rank in the group
  group.size = static_cast<int64_t>(std::min<uint64_t>(records.Varint(), INT32_MAX));
  if (with_ranks) {
    const std::optional<IntListId> ranks = ReadInts(records, records.Varint(), false);
    if (!ranks) return std::nullopt;
    group.ranks = *ranks;
  }
  group_ = group;
  if (std::ranges::find(groups_, group) == groups_.end()) groups_.push_back(group);
  return Opaque("Object", ProcessGroupText(builder_.text(group.name)));
}

std::optional<IntListId> CaptureValues::ReadInts(RecordView& records, uint64_t count,
                                                 bool with_sign) {
  if (count > records.left()) return std::nullopt;
  ints_.clear();
  for (uint64_t i = 0; i < count; ++i) {
    ints_.push_back(with_sign ? records.Signed() : static_cast<int64_t>(records.Varint()));
  }
  return builder_.InternInts(ints_);
}

std::optional<Value> CaptureValues::ReadTensor(RecordView& records) {
  const uint64_t number = tensors_++;
  const uint8_t flags = records.Byte();
  const std::optional<StringId> element = ReadString(records);
  const std::optional<StringId> device = ReadString(records);
  if (!element || !device) return std::nullopt;
  const std::string_view element_name = builder_.text(*element);
  TensorUse use;
  use.device = *device;
  use.type = Type(fmt::format("Tensor({})", element_name));
  use.element_bytes = ElementBytes(DTypeFromText(element_name)).value_or(0);
  use.requires_grad = (flags & flag::kRequiresGrad) != 0 ? Known::kYes : Known::kNo;
  use.tensor = records.Fixed64();
  if ((flags & flag::kHasStorage) != 0) {
    use.storage = records.Fixed64();
    use.offset = static_cast<int64_t>(records.Varint());
    use.storage_bytes = static_cast<int64_t>(records.Varint());
  }
  if ((flags & flag::kLayout) != 0) records.Varint();
  if ((flags & flag::kNoSizes) == 0) {
    const uint64_t dimensions = records.Varint();
    const std::optional<IntListId> sizes = ReadInts(records, dimensions, false);
    if (!sizes) return std::nullopt;
    use.shape = *sizes;
    const std::vector<int64_t> shape = ints_;
    use.numel = 1;
    for (const int64_t size : shape) {
      if (size < 0 || __builtin_mul_overflow(use.numel, size, &use.numel)) return std::nullopt;
    }
    if ((flags & flag::kContiguous) != 0) {
      int64_t stride = 1;
      for (size_t i = shape.size(); i-- > 0;) {
        ints_[i] = stride;
        if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[i], 1), &stride)) {
          return std::nullopt;
        }
      }
      use.strides = builder_.InternInts(ints_);
    } else if ((flags & flag::kLayout) == 0) {
      const std::optional<IntListId> strides = ReadInts(records, dimensions, true);
      if (!strides) return std::nullopt;
      use.strides = *strides;
    }
  }
  if ((flags & flag::kWrappedNumber) != 0 && !ReadNumber(records, use)) return std::nullopt;
  const bool with_statistics = (flags & flag::kStatistics) != 0;
  const bool with_range = (flags & flag::kRange) != 0;
  if (with_statistics && !with_range) return std::nullopt;
  if (with_range && !ReadIntegerFacts(records, number, with_statistics)) return std::nullopt;
  if (records.failed()) return std::nullopt;
  return Value::Tensor(use.type, builder_.InternTensor(use));
}

bool CaptureValues::ReadIntegerFacts(RecordView& records, uint64_t number, bool with_statistics) {
  const int64_t least = records.Signed();
  const int64_t greatest = records.Signed();
  if (greatest < least) return false;
  ranges_ += fmt::format("{}\"{}\":[{},{}]", ranges_.empty() ? "{" : ",", number, least, greatest);
  if (!with_statistics) return true;
  IndexStatistics& one = statistics_.emplace_back();
  one.tensor = number;
  one.elements = records.Varint();
  one.distinct = records.Varint();
  one.equal_pairs = records.Varint();
  const uint8_t flags = records.Byte();
  one.ascends = (flags & capture::index_flag::kAscends) != 0;
  // 0 instead of 2^64 for the full range.
  const uint64_t span = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) + 1;
  one.skew = FitZipf(one.elements, one.equal_pairs, span);
  if (one.distinct > one.elements) return false;
  return (flags & capture::index_flag::kValues) == 0 || ReadIndexValues(records, number);
}

bool CaptureValues::ReadIndexValues(RecordView& records, uint64_t number) {
  const uint64_t count = records.Varint();
  if (count > records.left()) return false;
  index_values_ += fmt::format("{}\"{}\":[", index_values_.empty() ? "{" : ",", number);
  uint64_t value = 0;
  for (uint64_t i = 0; i < count; ++i) {
    value += static_cast<uint64_t>(records.Signed());
    if (i != 0) index_values_ += ',';
    index_values_ += std::to_string(static_cast<int64_t>(value));
  }
  index_values_ += ']';
  return !records.failed();
}

bool CaptureValues::ReadNumber(RecordView& records, TensorUse& use) {
  switch (static_cast<Tag>(records.Byte())) {
    case Tag::kFalse: use.number_kind = ValueKind::kBool; return true;
    case Tag::kTrue:
      use.number_kind = ValueKind::kBool;
      use.number = 1;
      return true;
    case Tag::kInt:
      use.number_kind = ValueKind::kInt;
      use.number = static_cast<uint64_t>(records.Signed());
      return true;
    case Tag::kDouble:
      use.number_kind = ValueKind::kDouble;
      use.number = records.Fixed64();
      return true;
    case Tag::kComplex:
      records.Fixed64();
      records.Fixed64();
      return true;
    case Tag::kOpaque: records.Text(); return true;
    default: return false;
  }
}

}  // namespace etude
