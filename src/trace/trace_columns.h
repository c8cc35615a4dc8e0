#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/container/known_column.h"
#include "src/base/units.h"
#include "src/trace/value.h"
#include "src/trace/words/enums.h"

namespace etude {

// Columns of a trace, one row per node. A column added here is copied and compared automatically;
// ForEachColumn must list it.
struct TraceColumns {
  std::vector<uint64_t> source_id;
  std::vector<NodeKind> kind;
  std::vector<Place> place;
  std::vector<StringId> name;
  std::vector<NodeId> parent;
  std::vector<LaneId> lane;
  // Columns from here on may be shorter than the node count; missing rows are absent.
  KnownColumn<Nanos> start;
  KnownColumn<Nanos> duration;
  KnownColumn<Nanos> exclusive;
  std::vector<ValueListId> inputs;
  std::vector<ValueListId> outputs;
  KnownColumn<uint64_t> rf_id;
  KnownColumn<uint64_t> fw_parent;
  KnownColumn<int64_t> seq_id;
  KnownColumn<uint8_t> scope;
  KnownColumn<uint64_t> tid;
  KnownColumn<uint64_t> fw_tid;
  std::vector<StringId> op_schema;
  std::vector<StringId> kernel_backend;
  std::vector<StringId> kernel_file;
  std::vector<StringId> tensor_range;
  std::vector<StringId> index_statistics;
  std::vector<StringId> index_values;
  KnownColumn<int64_t> correlation;
  KnownColumn<int64_t> external_id;

  friend bool operator==(const TraceColumns&, const TraceColumns&) = default;
};

// Calls `fn` with each column of `c`, which may be const.
template <typename Columns, typename Fn>
void ForEachColumn(Columns& c, Fn fn) {
  const auto call = [&](auto&... each) {
    static_assert((sizeof(each) + ...) == sizeof(TraceColumns), "not all columns are listed");
    (fn(each), ...);
  };
  call(c.source_id, c.kind, c.place, c.name, c.parent, c.lane, c.start, c.duration, c.exclusive,
       c.inputs, c.outputs, c.rf_id, c.fw_parent, c.seq_id, c.scope, c.tid, c.fw_tid, c.op_schema,
       c.kernel_backend, c.kernel_file, c.tensor_range, c.index_statistics, c.index_values,
       c.correlation, c.external_id);
}

}  // namespace etude
