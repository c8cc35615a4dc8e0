#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/python/shared_trace.h"

namespace etude::python {

// A column of a trace for other libraries: numbers in the trace's memory.
struct Column {
  enum class Type : uint8_t { kInt8, kInt32, kInt64, kUInt64 };
  // Interpretation of a number.
  enum class Meaning : uint8_t {
    kNumber,   // plain number
    kRow,      // row of a table; -1: none
    kText,     // string of the trace; -1: none
    kName,     // index in `names`
    kIntList,  // list of integers of the trace; -1: none
  };

  std::string name;
  Type type = Type::kInt64;
  Meaning meaning = Meaning::kNumber;
  const void* data = nullptr;
  size_t rows = 0;
  size_t stride = 0;                // bytes between values
  const uint64_t* known = nullptr;  // kNumber: validity bits; null: all values are known
  std::span<const std::string_view> names;
  TracePtr trace;
  std::shared_ptr<const void> memory;  // owner of `data` and `known`, if not the trace

  size_t value_bytes() const;
  // Returns the value of a row; kUInt64 values as the bits of an int64_t.
  int64_t Get(size_t row) const;
  bool is_known(size_t row) const;
};

// Columns of equal length.
struct Columns {
  size_t rows = 0;
  std::vector<Column> columns;
  TracePtr trace;

  const Column* Find(std::string_view name) const;
};

// Dependencies as rows: entries offsets[n] <= i < offsets[n + 1] of `targets` and `kinds` belong to
// node n.
struct Dependencies {
  Column offsets;  // one more than nodes
  Column targets;
  Column kinds;
};

// Checks a trace. kUnavailable for 2^31 or more nodes or strings, because ids are exported as
// int32.
Status CheckSizes(const Trace& trace);

// Returns one row per node. Incomplete columns are copied and padded once; all others are in the
// trace.
Columns NodeColumns(const TracePtr& trace);
// Returns one row per distinct tensor use. All columns are in the trace.
Columns TensorColumns(const TracePtr& trace);
// Returns one row per tensor among the arguments and results of nodes, with lists flattened.
// Computed by the first call.
Columns TensorUseColumns(const TracePtr& trace);
Dependencies DependencyColumns(const TracePtr& trace);

}  // namespace etude::python
