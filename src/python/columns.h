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

// A column of a trace as other libraries see it: numbers in memory that belongs to the trace.
struct Column {
  enum class Type : uint8_t { kInt8, kInt32, kInt64, kUInt64 };
  // What a number stands for.
  enum class Meaning : uint8_t {
    kNumber,   // itself
    kRow,      // the row of a table; -1: none
    kText,     // a string of the trace; -1: none
    kName,     // an entry of `names`
    kIntList,  // a list of integers of the trace; -1: none
  };

  std::string name;
  Type type = Type::kInt64;
  Meaning meaning = Meaning::kNumber;
  const void* data = nullptr;
  size_t rows = 0;
  size_t stride = 0;                // bytes from one value to the next
  const uint64_t* known = nullptr;  // kNumber: a bit for each value; null: all are known
  std::span<const std::string_view> names;
  TracePtr trace;
  std::shared_ptr<const void> memory;  // what `data` and `known` lie in, if not in the trace

  size_t value_bytes() const;
  // The value of one row; kUInt64 in the bits of an int64_t.
  int64_t Get(size_t row) const;
  bool is_known(size_t row) const;
};

// Columns of one length.
struct Columns {
  size_t rows = 0;
  std::vector<Column> columns;
  TracePtr trace;

  const Column* Find(std::string_view name) const;
};

// What a node waits for, in rows: entry i of `targets` and `kinds` belongs to the node n with
// offsets[n] <= i < offsets[n + 1].
struct Dependencies {
  Column offsets;  // one more than nodes
  Column targets;
  Column kinds;
};

// kUnavailable for traces of 2^31 nodes or strings and more: ids are handed out as int32.
Status CheckSizes(const Trace& trace);

// One row per node. A column that the trace does not have to its end is copied and filled up, once;
// all others lie in the trace.
Columns NodeColumns(const TracePtr& trace);
// One row per different use of a tensor: what the trace knows of it. All lie in the trace.
Columns TensorColumns(const TracePtr& trace);
// One row per tensor among the arguments and results of the nodes, lists flattened. Found
// by the first call.
Columns TensorUseColumns(const TracePtr& trace);
Dependencies DependencyColumns(const TracePtr& trace);

}  // namespace etude::python
