#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Validated sizes and strides of a tensor use: sizes are not negative, and no product overflows.
struct TensorShape {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  bool strides_known = false;    // else they are those of a contiguous tensor
  // Required storage in bytes: offset and extent.
  int64_t storage_bytes = 0;
};

// Returns nullopt if the use is undefined, negative or does not fit 63 bits.
std::optional<TensorShape> ShapeOf(const Trace& trace, const TensorUse& use);

// Return true for an undefined tensor (an omitted optional one), by its use or by its type in the
// file.
bool IsUndefined(const Trace& trace, const TensorUse& use);
bool IsUndefinedType(std::string_view type);

// Returns the element type; kUnknown if the file has an unknown one.
DType DTypeOf(const Trace& trace, const TensorUse& use);

// Returns true if the value is a storage, recorded without further facts.
bool IsStorage(const Trace& trace, const Value& value);

}  // namespace etude
