#include "src/run/step/tensor_shape.h"

namespace etude {

bool IsUndefined(const Trace& trace, const TensorUse& use) {
  return IsUndefinedType(trace.text(use.type));
}

bool IsUndefinedType(std::string_view type) {
  return type.find("nullptr") != std::string_view::npos;
}

bool IsStorage(const Trace& trace, const Value& value) {
  return value.kind == ValueKind::kOpaque && trace.text(value.type) == "Storage";
}

DType DTypeOf(const Trace& trace, const TensorUse& use) {
  return DTypeFromText(trace.text(use.type));
}

std::optional<TensorShape> ShapeOf(const Trace& trace, const TensorUse& use) {
  if (IsUndefined(trace, use)) return std::nullopt;
  const std::optional<int64_t> element = ElementBytes(DTypeOf(trace, use));
  if (!element || use.offset < 0) return std::nullopt;
  TensorShape shape;
  const auto sizes = trace.ints(use.shape);
  const auto strides = trace.ints(use.strides);
  shape.sizes.assign(sizes.begin(), sizes.end());
  shape.strides_known = use.strides && strides.size() == sizes.size();
  if (shape.strides_known) {
    shape.strides.assign(strides.begin(), strides.end());
  } else {
    shape.strides.resize(sizes.size());
  }
  int64_t numel = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] < 0) return std::nullopt;
    if (!shape.strides_known) shape.strides[i] = numel;
    if (shape.strides[i] < 0) return std::nullopt;
    // As in PyTorch, an empty dimension counts as one for the strides of those before it.
    const int64_t factor = sizes[i] == 0 ? 1 : sizes[i];
    if (__builtin_mul_overflow(numel, factor, &numel)) return std::nullopt;
  }
  int64_t last = use.offset;  // index of the last element in the storage
  bool empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) empty = true;
    int64_t reach = 0;
    if (sizes[i] > 0 && __builtin_mul_overflow(sizes[i] - 1, shape.strides[i], &reach)) {
      return std::nullopt;
    }
    if (__builtin_add_overflow(last, reach, &last)) return std::nullopt;
  }
  if (!empty) {
    if (__builtin_add_overflow(last, 1, &last) ||
        __builtin_mul_overflow(last, *element, &shape.storage_bytes)) {
      return std::nullopt;
    }
  }
  return shape;
}

}  // namespace etude
