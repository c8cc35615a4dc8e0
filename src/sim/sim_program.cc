#include "src/sim/sim_program.h"

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/formats/chakra_attr.h"
#include "src/formats/protobuf.h"

namespace etude {
namespace {

std::optional<chakra::AttrMessage> AttrOf(const Trace& trace, NodeId node, std::string_view name) {
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kProtobuf || trace.text(extra.key) != name) continue;
    try {
      chakra::AttrMessage message;
      chakra::DecodeAttr(protobuf::Payload(trace.text(extra.text)), message);
      return message;
    } catch (const protozero::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

int64_t NumberOf(const Trace& trace, NodeId node, std::string_view name) {
  const auto attr = AttrOf(trace, node, name);
  return attr ? attr->value.AsInt64().value_or(0) : 0;
}

// 'involved_dim', a list of bools: all dimensions unless it is there.
uint32_t DimsOf(const Trace& trace, NodeId node) {
  constexpr protozero::pbf_tag_type kBoolList = 28;
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kProtobuf || trace.text(extra.key) != "involved_dim") continue;
    try {
      const std::string_view payload = protobuf::Payload(trace.text(extra.text));
      protozero::pbf_reader attr(payload.data(), payload.size());
      if (!attr.next(kBoolList)) continue;
      protozero::pbf_reader list = attr.get_message();
      uint32_t dims = 0;
      uint32_t bit = 1;
      const auto add = [&](bool value) {
        if (value) dims |= bit;
        bit <<= 1;
      };
      while (list.next(1)) {
        if (list.wire_type() == protozero::pbf_wire_type::varint) {
          add(list.get_bool());
        } else {
          for (const bool value : list.get_packed_bool()) add(value);
        }
      }
      return dims;
    } catch (const protozero::exception&) {
      continue;
    }
  }
  return ~uint32_t{0};
}

SimNode NodeOf(const Trace& trace, NodeId node) {
  SimNode made{.kind = trace.kind(node), .on_host = trace.place(node) == Place::kHost};
  if (const auto duration = trace.duration(node)) made.duration = duration->count;
  switch (made.kind) {
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore: made.bytes = NumberOf(trace, node, "tensor_size"); break;
    case NodeKind::kCollective:
    case NodeKind::kSend:
    case NodeKind::kRecv: break;
    case NodeKind::kMetadata:
    case NodeKind::kUnknown: break;
    default:
      made.kind = NodeKind::kCompute;
      made.flops = NumberOf(trace, node, "num_ops");
      made.bytes = NumberOf(trace, node, "tensor_size");
  }
  const Comm* comm = trace.comm(node);
  if (comm == nullptr || !IsCommunication(made.kind)) return made;
  made.collective = comm->type;
  made.bytes = comm->bytes ? comm->bytes->count : 0;
  made.peer = (made.kind == NodeKind::kSend ? comm->dst : comm->src).value_or(-1);
  made.tag = comm->tag.value_or(0);
  made.priority = comm->priority.value_or(0);
  if (comm->group) {
    const std::string_view group = trace.text(comm->group);
    std::from_chars(group.data(), group.data() + group.size(), made.group);
  }
  made.dims = DimsOf(trace, node);
  return made;
}

}  // namespace

Result<SimProgram> MakeSimProgram(const Trace& trace) {
  SimProgram program;
  const size_t count = trace.node_count();
  program.origin.reserve(count);
  ForEachNode(trace, [&](NodeId node) { program.origin.push_back(node); });
  std::ranges::stable_sort(program.origin, {}, [&](NodeId node) { return trace.source_id(node); });
  std::vector<uint32_t> index(count);
  for (size_t i = 0; i < count; ++i) {
    index[program.origin[i].index()] = static_cast<uint32_t>(i);
  }
  program.waits.resize(count);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (size_t i = 0; i < count; ++i) {
    const NodeId node = program.origin[i];
    program.nodes.push_back(NodeOf(trace, node));
    program.source_ids.push_back(trace.source_id(node));
    std::vector<uint32_t> befores;
    if (trace.parent(node)) befores.push_back(index[trace.parent(node).index()]);
    for (const NodeId dep : trace.deps(node)) befores.push_back(index[dep.index()]);
    std::ranges::sort(befores);
    befores.erase(std::ranges::unique(befores).begin(), befores.end());
    program.waits[i] = static_cast<uint32_t>(befores.size());
    for (const uint32_t before : befores) edges.emplace_back(before, static_cast<uint32_t>(i));
  }
  program.children = Csr<uint32_t>::Build(
      count, edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  if (!trace.is_acyclic()) return BadInput("found a cycle of dependencies, expected none");
  return program;
}

}  // namespace etude
