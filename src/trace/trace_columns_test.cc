#include "src/trace/trace_columns.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/trace/job/packed_trace.h"
#include "src/trace/same_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_same::SameTrace;

// Makes a node with all facts, below another one.
Trace FullTrace(TraceBuilder& builder) {
  const auto list = [&](int64_t number) {
    return builder.InternValues(std::vector<Value>{Value::Int(builder.Intern("Int"), number)});
  };
  NodeRow row;
  row.source_id = 1;
  row.name = builder.Intern("above");
  builder.AddNode(row);
  row = {.source_id = 2,
         .kind = NodeKind::kOperator,
         .place = Place::kHost,
         .name = builder.Intern("name"),
         .parent = 1,
         .lane = builder.InternLane({.process = builder.Intern("3")}),
         .start = Nanos{4},
         .duration = Nanos{5},
         .exclusive = Nanos{6},
         .inputs = list(7),
         .outputs = list(8),
         .rf_id = 9,
         .fw_parent = 10,
         .seq_id = 11,
         .scope = uint8_t{12},
         .tid = 13,
         .fw_tid = 14,
         .op_schema = builder.Intern("schema"),
         .kernel_backend = builder.Intern("backend"),
         .kernel_file = builder.Intern("file"),
         .tensor_range = builder.Intern("range"),
         .index_statistics = builder.Intern("statistics"),
         .index_values = builder.Intern("values"),
         .correlation = 15,
         .external_id = 16};
  builder.AddNode(row);
  return builder.Finish().value();
}

template <typename T>
bool IsKnown(const std::vector<T>& column, size_t row) {
  return row < column.size() && column[row] != T();
}
template <typename T>
bool IsKnown(const KnownColumn<T>& column, size_t row) {
  return column.known(row);
}

// Returns the index of the first column without a value for the last node; -1 if there is none.
int EmptyColumn(const Trace& trace) {
  int at = 0;
  int empty = -1;
  ForEachColumn(trace.columns(), [&](const auto& column) {
    if (empty < 0 && !IsKnown(column, trace.node_count() - 1)) empty = at;
    ++at;
  });
  return empty;
}

// Fails if a new column is not filled or not copied.
TEST(TraceColumns, AllComeFromRowsAndAreCopied) {
  TraceBuilder builder;
  const Trace trace = FullTrace(builder);
  EXPECT_EQ(EmptyColumn(trace), -1);

  TraceBuilder to;
  const Trace copy = CopyTrace(trace, to).value();
  EXPECT_EQ(EmptyColumn(copy), -1);
  EXPECT_TRUE(SameTrace(copy, trace));

  TraceBuilder on({}, trace);
  on.AddNodesOfBase();
  EXPECT_EQ(EmptyColumn(on.Finish().value()), -1);

  const Trace unpacked = PackedTrace::Pack(trace).value().Unpack().value();
  EXPECT_EQ(EmptyColumn(unpacked), -1);
  EXPECT_TRUE(SameTrace(unpacked, trace));
}

}  // namespace
}  // namespace etude
