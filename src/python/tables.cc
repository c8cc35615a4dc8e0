#include "src/python/tables.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace etude::python {
namespace {

Cell Text(const Trace& trace, StringId id) {
  return id ? Cell(std::string(trace.text(id))) : Cell();
}

Cell Number(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }

Cell Device(int32_t number) { return number >= 0 ? Cell(int64_t{number}) : Cell(); }

// Returns "0, 1, 2"; unknown without a list.
Cell Numbers(const Trace& trace, IntListId list) {
  return list ? Cell(fmt::format("{}", fmt::join(trace.ints(list), ", "))) : Cell();
}

}  // namespace

Table LaneTable(const Trace& trace) {
  Table table{.key = "lanes",
              .title = "lanes",
              .columns = {{"process", "process"},
                          {"thread", "thread"},
                          {"device", "device", Unit::kCount},
                          {"stream", "stream", Unit::kCount}}};
  for (size_t i = 0; i < trace.lane_count(); ++i) {
    const Lane& lane = trace.lane(LaneId::FromIndex(i));
    table.rows.push_back({Text(trace, lane.process), Text(trace, lane.thread), Device(lane.device),
                          Device(lane.stream)});
  }
  return table;
}

Table CommTable(const Trace& trace) {
  Table table{.key = "comms",
              .title = "communication",
              .columns = {{"node", "node", Unit::kCount},
                          {"type", "type"},
                          {"name", "name"},
                          {"group", "group"},
                          {"dtype", "dtype"},
                          {"bytes", "bytes", Unit::kBytes},
                          {"in_elements", "elements in", Unit::kCount},
                          {"out_elements", "elements out", Unit::kCount},
                          {"in_split", "split in"},
                          {"out_split", "split out"},
                          {"root", "root", Unit::kCount},
                          {"src", "source", Unit::kCount},
                          {"dst", "destination", Unit::kCount},
                          {"tag", "tag", Unit::kCount},
                          {"group_size", "group size", Unit::kCount},
                          {"priority", "priority", Unit::kCount}}};
  for (const auto& [node, comm] : trace.comms()) {
    const auto known = [](bool is_known, std::string_view name) {
      return is_known ? Cell(std::string(name)) : Cell();
    };
    table.rows.push_back({static_cast<int64_t>(node.index()),
                          known(comm.type != CollectiveType::kUnknown, Name(comm.type)),
                          Text(trace, comm.name), Text(trace, comm.group),
                          known(comm.dtype != DType::kUnknown, Name(comm.dtype)),
                          ToCell(comm.bytes), Number(comm.in_elements), Number(comm.out_elements),
                          Numbers(trace, comm.in_split), Numbers(trace, comm.out_split),
                          Number(comm.root), Number(comm.src), Number(comm.dst), Number(comm.tag),
                          Number(comm.group_size), Number(comm.priority)});
  }
  return table;
}

Table GroupTable(const Trace& trace) {
  Table table{.key = "process_groups",
              .title = "process groups",
              .columns = {{"name", "name"},
                          {"description", "description"},
                          {"backend", "backend"},
                          {"ranks", "ranks"},
                          {"size", "size", Unit::kCount}}};
  for (const ProcessGroup& group : trace.process_groups()) {
    table.rows.push_back({Text(trace, group.name), Text(trace, group.description),
                          Text(trace, group.backend), Numbers(trace, group.ranks),
                          Number(group.size)});
  }
  return table;
}

}  // namespace etude::python
