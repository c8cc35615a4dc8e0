#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Sizes and strides of a tensor use, checked: sizes are not negative, and no product overflows.
struct TensorShape {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  bool strides_known = false;    // else they are those of a contiguous tensor
  // Storage the use needs, in bytes: offset and extent.
  int64_t storage_bytes = 0;
};

// nullopt if the use is undefined, negative or does not fit 63 bits.
std::optional<TensorShape> ShapeOf(const Trace& trace, const TensorUse& use);

// Whether the use is an undefined tensor (an optional one that was not given); the same by the type
// that the file gives it.
bool IsUndefined(const Trace& trace, const TensorUse& use);
bool IsUndefinedType(std::string_view type);

// The element type, kUnknown if the file has one we do not know.
DType DTypeOf(const Trace& trace, const TensorUse& use);

// Whether the value is a storage, of which the file says no more than that.
bool IsStorage(const Trace& trace, const Value& value);

}  // namespace etude
