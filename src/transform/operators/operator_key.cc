#include "src/transform/operators/operator_key.h"

#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/run/step/recorded_step.h"
#include "src/run/step/tensor_shape.h"

namespace etude {
namespace {

// Writes arguments of an operator as text.
class KeyText {
 public:
  explicit KeyText(const Trace& trace) : trace_(trace) {}

  // Appends values with commas between them; returns false if one is unknown.
  bool Add(std::span<const Value> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text_ += ',';
      if (!Add(values[i])) return false;
    }
    return true;
  }
  std::string& text() { return text_; }

 private:
  bool Add(const Value& value) {
    const auto out = std::back_inserter(text_);
    switch (value.kind) {
      case ValueKind::kNone: text_ += "None"; return true;
      case ValueKind::kBool: text_ += value.as_bool() ? "True" : "False"; return true;
      case ValueKind::kInt: fmt::format_to(out, "{}", value.as_int()); return true;
      case ValueKind::kDouble: fmt::format_to(out, "{:#}", value.as_double()); return true;
      case ValueKind::kString:
      case ValueKind::kDevice:
        fmt::format_to(out, "'{}'", trace_.text(value.as_text()));
        return true;
      // Generators and the like.
      case ValueKind::kOpaque: text_ += trace_.text(value.as_text()); return true;
      case ValueKind::kTensor: return Add(trace_.tensor(value.as_tensor()));
      case ValueKind::kList: {
        const std::span<const Value> items = trace_.values(value.as_list());
        if (items.size() >= kObserverListLimit) return false;
        text_ += '[';
        const bool is_known = Add(items);
        text_ += ']';
        return is_known;
      }
      case ValueKind::kRaw: return false;
    }
    return false;
  }

  bool Add(const TensorUse& use) {
    if (IsUndefined(trace_, use)) {
      text_ += "None";
      return true;
    }
    const std::optional<TensorShape> shape = ShapeOf(trace_, use);
    const DType type = DTypeOf(trace_, use);
    if (!use.shape || !shape || type == DType::kUnknown) return false;
    const auto out = std::back_inserter(text_);
    fmt::format_to(out, "{}[{}]", Name(type), fmt::join(shape->sizes, ","));
    if (!IsContiguous(*shape)) fmt::format_to(out, ":{}", fmt::join(shape->strides, ":"));
    return true;
  }

  // Strides of dimensions of one element have no effect.
  static bool IsContiguous(const TensorShape& shape) {
    int64_t expected = 1;
    for (size_t i = shape.sizes.size(); i-- > 0;) {
      if (shape.sizes[i] == 0) return true;
      if (shape.sizes[i] != 1 && shape.strides[i] != expected) return false;
      expected *= shape.sizes[i];
    }
    return true;
  }

  const Trace& trace_;
  std::string text_;
};

}  // namespace

std::optional<OperatorKey> KeyOf(const Trace& trace, NodeId node) {
  if (!IsOperator(trace, node)) return std::nullopt;
  KeyText text(trace);
  if (!text.Add(trace.inputs(node))) return std::nullopt;
  return OperatorKey{.name = std::string(OperatorNameOf(trace, node)),
                     .arguments = std::move(text.text())};
}

}  // namespace etude
