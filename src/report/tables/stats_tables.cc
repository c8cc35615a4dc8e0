#include "src/report/tables/stats_tables.h"

#include <utility>

namespace etude {
namespace {

Cell Text(std::string_view text) { return std::string(text); }

Table Ops(const TraceStats& stats) {
  Table table{.key = "ops",
              .title = "operators and other nodes by name",
              .columns = {{"name", "name", Unit::kText},
                          {"kind", "kind", Unit::kText},
                          {"place", "on", Unit::kText},
                          {"count", "count", Unit::kCount},
                          {"self_ns", "self", Unit::kTime},
                          {"total_ns", "total", Unit::kTime},
                          {"min_ns", "min", Unit::kTime},
                          {"median_ns", "median", Unit::kTime},
                          {"max_ns", "max", Unit::kTime},
                          {"shapes", "shapes", Unit::kCount},
                          {"input_bytes", "in", Unit::kBytes},
                          {"output_bytes", "out", Unit::kBytes}},
              .rows = {}};
  for (const TraceStats::Op& op : stats.ops) {
    const auto& times = op.durations;
    table.rows.push_back({Text(op.name), Text(Name(op.kind)), Text(Name(op.place)),
                          CountCell(op.count), ToCell(op.self), ToCell(op.total),
                          times ? Cell(times->min.count) : Cell(),
                          times ? Cell(times->median.count) : Cell(), ToCell(op.longest),
                          CountCell(op.shapes), ToCell(op.inputs), ToCell(op.outputs)});
  }
  return table;
}

Table Kinds(const TraceStats& stats) {
  Table table{.key = "kinds",
              .title = "nodes by kind",
              .columns = {{"kind", "kind", Unit::kText},
                          {"count", "count", Unit::kCount},
                          {"timed", "timed", Unit::kCount},
                          {"self_ns", "self", Unit::kTime},
                          {"total_ns", "total", Unit::kTime}},
              .rows = {}};
  for (const TraceStats::Kind& row : stats.kinds) {
    table.rows.push_back({Text(Name(row.kind)), CountCell(row.count), CountCell(row.timed),
                          ToCell(row.self), ToCell(row.total)});
  }
  return table;
}

Table ModuleTable(const TraceStats& stats) {
  Table table{.key = "modules",
              .title = "modules",
              .columns = {{"module", "module", Unit::kText},
                          {"operators", "operators", Unit::kCount},
                          {"host_self_ns", "host time", Unit::kTime},
                          {"device_ops", "device ops", Unit::kCount},
                          {"device_ns", "device time", Unit::kTime}},
              .rows = {}};
  for (const TraceStats::Module& row : stats.modules) {
    table.rows.push_back({Text(row.name), CountCell(row.operators), ToCell(row.host_self),
                          CountCell(row.device_ops), ToCell(row.device_time)});
  }
  return table;
}

Table Lanes(const TraceStats& stats) {
  Table table{.key = "lanes",
              .title = "threads and streams",
              .columns = {{"place", "on", Unit::kText},
                          {"process", "process", Unit::kText},
                          {"thread", "thread", Unit::kText},
                          {"device", "device", Unit::kNumber},
                          {"stream", "stream", Unit::kNumber},
                          {"count", "count", Unit::kCount},
                          {"busy_ns", "busy", Unit::kTime},
                          {"busy_share", "of the span", Unit::kShare}},
              .rows = {}};
  for (const TraceStats::LaneUse& row : stats.lanes) {
    const auto known = [](int32_t number) { return number < 0 ? Cell() : Cell(int64_t{number}); };
    table.rows.push_back({Text(Name(row.place)), row.lane.process ? Text(row.process) : Cell(),
                          row.lane.thread ? Text(row.thread) : Cell(), known(row.lane.device),
                          known(row.lane.stream), CountCell(row.count), ToCell(row.busy),
                          ToCell(row.share)});
  }
  return table;
}

// Returns `columns` followed by columns for sent or copied data.
std::vector<Table::Column> WithTransfers(std::vector<Table::Column> columns) {
  columns.insert(columns.end(), {{"count", "count", Unit::kCount},
                                 {"sized", "sized", Unit::kCount},
                                 {"bytes", "volume", Unit::kBytes},
                                 {"min_bytes", "smallest", Unit::kBytes},
                                 {"max_bytes", "largest", Unit::kBytes},
                                 {"total_ns", "time", Unit::kTime},
                                 {"bytes_per_s", "rate", Unit::kRate}});
  return columns;
}
std::vector<Cell> WithTransfers(std::vector<Cell> cells, const TraceStats::Transfers& row) {
  cells.insert(cells.end(),
               {CountCell(row.count), CountCell(row.sized), ToCell(row.bytes), ToCell(row.smallest),
                ToCell(row.largest), ToCell(row.time), ToCell(row.bytes_per_s)});
  return cells;
}

Table Communications(const TraceStats& stats) {
  Table table{.key = "communication",
              .title = "communication",
              .columns = WithTransfers({{"type", "type", Unit::kText},
                                        {"group", "group", Unit::kText},
                                        {"dtype", "dtype", Unit::kText}}),
              .rows = {}};
  for (const TraceStats::Communication& row : stats.communications) {
    table.rows.push_back(
        WithTransfers({Text(row.type), Text(row.group), Text(Name(row.dtype))}, row));
  }
  return table;
}

Table Copies(const TraceStats& stats) {
  Table table{
      .key = "copies",
      .title = "copies and fills of devices",
      .columns = WithTransfers({{"name", "name", Unit::kText}, {"kind", "kind", Unit::kText}}),
      .rows = {}};
  for (const TraceStats::Copy& row : stats.copies) {
    table.rows.push_back(WithTransfers({Text(row.name), Text(Name(row.kind))}, row));
  }
  return table;
}

}  // namespace

std::vector<Table> StatsTables(const TraceStats& stats) {
  return {Ops(stats),   Kinds(stats),          ModuleTable(stats),
          Lanes(stats), Communications(stats), Copies(stats)};
}

}  // namespace etude
