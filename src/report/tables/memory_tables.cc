#include "src/report/tables/memory_tables.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "src/run/activity.h"

namespace etude {
namespace {

// Returns a time relative to the begin of the trace.
Cell Since(const std::optional<Interval>& span, const std::optional<Nanos>& time) {
  std::optional<Nanos> since;
  if (time && span) since = *time - span->begin;
  return ToCell(since);
}

std::vector<Cell> Row(const MemorySource& source, const DeviceMemory& memory) {
  std::vector<Cell> cells;
  cells.emplace_back(memory.device);
  cells.emplace_back(source.name);
  return cells;
}

std::vector<Table::Column> WithSource(std::vector<Table::Column> more) {
  std::vector<Table::Column> columns = {{"device", "device", Unit::kText},
                                        {"source", "source", Unit::kText}};
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

// Returns the operator around an allocator event; other nodes unchanged.
NodeId Shown(const Trace& trace, NodeId node) {
  const NodeId parent = trace.parent(node);
  return trace.kind(node) == NodeKind::kMetadata && parent ? parent : node;
}

}  // namespace

MemoryFigures FindMemory(const Trace& trace, const Trace* device) {
  MemoryFigures found;
  if (auto devices = TensorMemory(trace)) {
    found.sources.push_back({"tensors", &trace, std::move(*devices)});
    found.notes.emplace_back(
        "tensors give a lower bound: they count from creation to last recorded use");
  } else {
    found.notes.push_back("tensors: " + devices.error().message);
  }
  if (auto devices = StatedMemory(trace); !devices.empty()) {
    found.sources.push_back({"formula", &trace, std::move(devices)});
  }
  // A device profile may lack events of the host; the accompanying capture contains them.
  for (const Trace* with_events : {device, &trace}) {
    if (with_events == nullptr) continue;
    std::vector<DeviceMemory> devices = AllocatorMemory(*with_events);
    if (devices.empty()) continue;
    for (const DeviceMemory& memory : devices) {
      if (memory.at_start) continue;
      found.notes.push_back(fmt::format(
          "the allocator of {} {}", memory.device,
          memory.has_totals
              ? "counts only memory allocated during the recording, not memory allocated before"
              : "does not report memory in use: figures are a lower bound from its allocations and "
                "frees; memory allocated before is unknown"));
    }
    found.sources.push_back({"allocator", with_events, std::move(devices)});
    break;
  }
  // The device with the highest peak comes first.
  for (MemorySource& source : found.sources) {
    std::ranges::stable_sort(source.devices, std::ranges::greater{}, &DeviceMemory::peak);
  }
  return found;
}

std::vector<Table> MemoryTables(const std::vector<MemorySource>& sources) {
  Table summary{.key = "summary",
                .title = "memory by device",
                .columns = WithSource({{"peak_bytes", "peak", Unit::kBytes},
                                       {"peak_op", "reached in", Unit::kText},
                                       {"peak_node", "node", Unit::kNumber},
                                       {"peak_time_ns", "at", Unit::kTime},
                                       {"start_bytes", "before", Unit::kBytes},
                                       {"end_bytes", "after", Unit::kBytes},
                                       {"reserved_bytes", "reserved", Unit::kBytes},
                                       {"allocations", "allocations", Unit::kCount}}),
                .rows = {}};
  Table peak{.key = "peak",
             .title = "memory at the peak, by the operator that created it",
             .columns = WithSource({{"op", "created by", Unit::kText},
                                    {"module", "module", Unit::kText},
                                    {"count", "count", Unit::kCount},
                                    {"bytes", "size", Unit::kBytes},
                                    {"share", "of the peak", Unit::kShare}}),
             .rows = {}};
  Table timeline{.key = "timeline",
                 .title = "memory in use over time",
                 .columns = WithSource({{"node", "node", Unit::kNumber},
                                        {"op", "from", Unit::kText},
                                        {"time_ns", "at", Unit::kTime},
                                        {"bytes", "in use", Unit::kBytes}}),
                 .rows = {}};
  for (const MemorySource& source : sources) {
    const Trace& trace = *source.trace;
    const auto span = SpanOf(trace);
    for (const DeviceMemory& memory : source.devices) {
      const NodeId at = memory.at_peak.node;
      std::vector<Cell> row = Row(source, memory);
      row.emplace_back(memory.peak.count);
      row.resize(row.size() + 2);
      if (at) {
        row[row.size() - 2] = std::string(trace.name(Shown(trace, at)));
        row[row.size() - 1] = static_cast<int64_t>(trace.source_id(Shown(trace, at)));
      }
      row.push_back(Since(span, memory.at_peak.time));
      row.push_back(ToCell(memory.at_start));
      row.emplace_back(memory.at_end.count);
      row.push_back(ToCell(memory.reserved));
      row.emplace_back(static_cast<int64_t>(memory.allocations));
      summary.rows.push_back(std::move(row));
      for (const DeviceMemory::Holder& holder : memory.holders) {
        std::vector<Cell> cells = Row(source, memory);
        cells.emplace_back(std::string(holder.op));
        cells.emplace_back(std::string(holder.module));
        cells.emplace_back(static_cast<int64_t>(holder.count));
        cells.emplace_back(holder.bytes.count);
        cells.emplace_back(static_cast<double>(holder.bytes.count) /
                           static_cast<double>(memory.peak.count));
        peak.rows.push_back(std::move(cells));
      }
      for (const DeviceMemory::Point& point : memory.timeline) {
        const NodeId node = Shown(trace, point.node);
        std::vector<Cell> cells = Row(source, memory);
        cells.emplace_back(static_cast<int64_t>(trace.source_id(node)));
        cells.emplace_back(std::string(trace.name(node)));
        cells.push_back(Since(span, point.time));
        cells.emplace_back(point.live.count);
        timeline.rows.push_back(std::move(cells));
      }
    }
  }
  return {std::move(summary), std::move(peak), std::move(timeline)};
}

}  // namespace etude
