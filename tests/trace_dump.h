#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/formats/json/value_text.h"
#include "src/trace/trace.h"

// Traces as text, so that tests can compare what two of them say, whatever their tables' ids.
namespace etude::testing_dump {

template <typename T>
std::string Text(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "-";
}
inline std::string Text(const std::optional<Nanos>& value) {
  return value ? std::to_string(value->count) : "-";
}

inline std::string Text(const Trace& trace, IntListId list) {
  if (!list) return "-";
  std::string text = "[";
  for (const int64_t number : trace.ints(list)) text += std::to_string(number) + " ";
  return text + "]";
}

inline std::string Arguments(const Trace& trace, ValueListId list) {
  if (!list) return "none";
  const auto values = trace.values(list);
  std::string text;
  AppendValues(trace, values, TextStyle::kJson, text);
  AppendShapes(trace, values, text);
  AppendStrides(trace, values, text);
  AppendTypes(trace, values, TextStyle::kJson, text);
  return text;
}

inline std::string LaneText(const Trace& trace, NodeId node) {
  const LaneId id = trace.lane_id(node);
  if (!id) return "-";
  const Lane& lane = trace.lane(id);
  return std::string(trace.text(lane.process)) + "/" + std::string(trace.text(lane.thread)) + "/" +
         std::to_string(lane.device) + "/" + std::to_string(lane.stream);
}

inline std::string CommText(const Trace& trace, const Comm* comm) {
  if (comm == nullptr) return "-";
  std::string text(Name(comm->type));
  text += "," + std::string(trace.text(comm->name)) + "," + std::string(trace.text(comm->group));
  text += "," + std::string(Name(comm->dtype));
  text += "," + (comm->bytes ? std::to_string(comm->bytes->count) : "-");
  for (const auto& number : {comm->in_elements, comm->out_elements, comm->root, comm->src,
                             comm->dst, comm->tag, comm->group_size, comm->priority}) {
    text += "," + Text(number);
  }
  return text + "," + Text(trace, comm->in_split) + "," + Text(trace, comm->out_split);
}

inline bool IsLayoutNote(const Trace& trace, const Extra& extra) {
  return extra.form == Extra::Form::kProtobuf && trace.text(extra.key) == "layout";
}

// All that a trace says of a node.
inline std::string NodeText(const Trace& trace, NodeId node) {
  std::string text = std::to_string(trace.source_id(node));
  const auto add = [&](std::string_view what, const std::string& value) {
    text += " ";
    text += what;
    text += "=" + value;
  };
  add("kind", std::string(Name(trace.kind(node))));
  add("place", std::string(Name(trace.place(node))));
  add("name", std::string(trace.name(node)));
  add("parent", trace.parent(node) ? std::to_string(trace.source_id(trace.parent(node))) : "-");
  add("lane", LaneText(trace, node));
  add("start", Text(trace.start(node)));
  add("duration", Text(trace.duration(node)));
  add("exclusive", Text(trace.exclusive(node)));
  add("in", Arguments(trace, trace.input_list(node)));
  add("out", Arguments(trace, trace.output_list(node)));
  add("rf", Text(trace.rf_id(node)));
  add("fw_parent", Text(trace.fw_parent(node)));
  add("seq", Text(trace.seq_id(node)));
  add("scope", Text(trace.scope(node)));
  add("tid", Text(trace.tid(node)));
  add("fw_tid", Text(trace.fw_tid(node)));
  add("schema", std::string(trace.text(trace.op_schema(node))));
  add("backend", std::string(trace.text(trace.kernel_backend(node))));
  add("file", std::string(trace.text(trace.kernel_file(node))));
  add("range", std::string(trace.text(trace.tensor_range(node))));
  add("index_values", std::string(trace.text(trace.index_values(node))));
  add("index_statistics", std::string(trace.text(trace.index_statistics(node))));
  add("correlation", Text(trace.correlation(node)));
  add("external", Text(trace.external_id(node)));
  add("comm", CommText(trace, trace.comm(node)));
  std::vector<std::string> deps;
  for (size_t i = 0; i < trace.deps(node).size(); ++i) {
    deps.push_back(std::to_string(trace.source_id(trace.deps(node)[i])) + ":" +
                   std::string(Name(trace.dep_kinds(node)[i])));
  }
  std::ranges::sort(deps);
  for (const std::string& dep : deps) add("dep", dep);
  for (const Extra& extra : trace.extras(node)) {
    if (IsLayoutNote(trace, extra)) continue;
    add(extra.form == Extra::Form::kJson ? "json" : "protobuf",
        std::string(trace.text(extra.key)) + "=" + std::string(trace.text(extra.text)));
  }
  return text;
}

// Its nodes, by id.
inline std::vector<std::string> NodeTexts(const Trace& trace) {
  std::vector<NodeId> nodes;
  ForEachNode(trace, [&](NodeId node) { nodes.push_back(node); });
  std::ranges::stable_sort(nodes, {}, [&](NodeId node) { return trace.source_id(node); });
  std::vector<std::string> texts;
  for (const NodeId node : nodes) texts.push_back(NodeText(trace, node));
  return texts;
}

inline std::string GroupsText(const Trace& trace) {
  std::string text;
  for (const ProcessGroup& group : trace.process_groups()) {
    text += std::string(trace.text(group.name)) + "," + std::string(trace.text(group.description)) +
            "," + std::string(trace.text(group.backend)) + "," + Text(trace, group.ranks) + "," +
            Text(group.size) + ";";
  }
  return text;
}

inline std::string InfoText(const Trace& trace) {
  const TraceInfo& info = trace.info();
  return info.schema + "," + info.time + "," + Text(info.pid) + "," + Text(info.start_ts) + "," +
         Text(info.finish_ts) + "," + Text(info.rank) + "," + Text(info.world_size) + "," +
         (info.traits.exclusive_durations ? "exclusive" : "inclusive");
}

}  // namespace etude::testing_dump
