#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/base/container/id.h"
#include "src/base/container/list_pool.h"
#include "src/base/text/string_pool.h"
#include "src/trace/words/enums.h"

namespace etude {

struct NodeTag;
struct TensorTag;
struct IntListTag;
struct ValueListTag;
struct LaneTag;

using NodeId = Id<NodeTag>;
using TensorId = Id<TensorTag>;
using IntListId = Id<IntListTag>;
using ValueListId = Id<ValueListTag>;
using LaneId = Id<LaneTag>;

enum class ValueKind : uint32_t {
  kNone,    // "<None>"
  kBool,    // payload 0 or 1
  kInt,     // payload: int64
  kDouble,  // payload: bits of the double
  kString,  // payload: StringId
  kDevice,  // payload: StringId
  kTensor,  // payload: TensorId
  kList,    // payload: ValueListId of the elements
  kOpaque,  // value missing from the file ("<Generator>"); payload: StringId of its text
  kRaw,     // value of unexpected form; payload: StringId of its JSON text
};

// Max number of list elements that PyTorch's observer writes; it truncates longer lists without a
// mark.
inline constexpr size_t kObserverListLimit = 4097;

// A boolean that may be unknown.
enum class Known : uint32_t { kUnknown, kNo, kYes };

// Use of a tensor by an operator. Equal uses are stored once per trace.
//
// `tensor` and `storage` are the file's ids of the tensor and its memory. They derive from
// addresses and are reused after a free, so they identify a tensor only together with a position in
// the trace (see analysis/data_flow.h).
struct TensorUse {
  uint64_t tensor = 0;
  uint64_t storage = 0;       // 0: undefined tensor
  int64_t offset = 0;         // into the storage, in elements
  int64_t numel = 0;          // elements
  int64_t element_bytes = 0;  // per element
  StringId device;            // "cpu", "cuda:0"; "" if undefined
  StringId type;              // as in the file: "Tensor(float)"
  IntListId shape;            // kNone: missing from the file
  IntListId strides;          // in elements; kNone: missing from the file
  // In native captures only.
  int64_t storage_bytes = -1;  // whole storage; -1: missing from the file
  Known requires_grad = Known::kUnknown;
  // Value of a Python number that became a tensor, which promotes types differently from other
  // tensors: kBool, kInt or kDouble, with a payload as in Value. kNone: no such number, or not
  // recorded.
  ValueKind number_kind = ValueKind::kNone;
  uint64_t number = 0;

  friend bool operator==(const TensorUse&, const TensorUse&) = default;
};

// Argument or result of an operator, or an element of one.
struct Value {
  ValueKind kind = ValueKind::kNone;
  StringId type;  // as in the file: "Int", "GenericList[Int,Int]"; kNone if missing
  uint64_t payload = 0;

  static Value None(StringId type) { return {ValueKind::kNone, type, 0}; }
  static Value Bool(StringId type, bool value) { return {ValueKind::kBool, type, value ? 1u : 0u}; }
  static Value Int(StringId type, int64_t value) {
    return {ValueKind::kInt, type, static_cast<uint64_t>(value)};
  }
  static Value Double(StringId type, double value) {
    return {ValueKind::kDouble, type, std::bit_cast<uint64_t>(value)};
  }
  // Makes a value; `kind` must be kString, kDevice, kOpaque or kRaw.
  static Value Text(ValueKind kind, StringId type, StringId text) {
    return {kind, type, text.value()};
  }
  static Value Tensor(StringId type, TensorId tensor) {
    return {ValueKind::kTensor, type, tensor.value()};
  }
  static Value List(StringId type, ValueListId list) {
    return {ValueKind::kList, type, list.value()};
  }

  // Each is meaningful only for the kinds above.
  bool as_bool() const { return payload != 0; }
  int64_t as_int() const { return static_cast<int64_t>(payload); }
  double as_double() const { return std::bit_cast<double>(payload); }
  StringId as_text() const { return StringId(static_cast<uint32_t>(payload)); }
  TensorId as_tensor() const { return TensorId(static_cast<uint32_t>(payload)); }
  ValueListId as_list() const { return ValueListId(static_cast<uint32_t>(payload)); }

  friend bool operator==(const Value&, const Value&) = default;
};

using IntListPool = ListPool<int64_t, IntListTag>;
using ValueListPool = ListPool<Value, ValueListTag>;

}  // namespace etude
