#include "src/sim/program/sim_program.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/chakra/chakra_notes.h"
#include "src/run/waits/host_times.h"
#include "src/trace/simulated.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

int64_t NumberOf(const Trace& trace, NodeId node, std::string_view name) {
  constexpr uint64_t kMost = INT64_MAX;
  return static_cast<int64_t>(
      std::min(chakra::StatedUnsigned(trace, node, name).value_or(0), kMost));
}

SimNode NodeOf(const Trace& trace, NodeId node, bool host_computes) {
  SimNode made{.kind = trace.kind(node),
               .on_host = trace.place(node) == Place::kHost && !host_computes};
  // Children are separate nodes.
  if (const auto own = StatedOwnTime(trace, node)) made.duration = own->count;
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
  made.unsized = !comm->bytes && made.collective != CollectiveType::kBarrier;
  made.tag = comm->tag.value_or(0);
  made.priority = comm->priority.value_or(0);
  made.root = comm->root.value_or(0);
  made.dims = chakra::InvolvedDims(trace, node);
  return made;
}

SimPartners StatedPartners(const Trace& trace, NodeId node) {
  SimPartners made;
  const Comm* comm = trace.comm(node);
  if (comm == nullptr || !IsCommunication(trace.kind(node))) return made;
  made.peer = comm->peer(trace.kind(node)).value_or(-1);
  if (comm->group) {
    const std::string_view group = trace.text(comm->group);
    std::from_chars(group.data(), group.data() + group.size(), made.group);
  }
  return made;
}

// Checks the duration of a computation. A trace keeps the raw field of a time that does not fit
// into nanoseconds.
bool TakesTooLong(const Trace& trace, NodeId node) {
  if (const auto own = StatedOwnTime(trace, node)) return own->count > kLongestSimulation;
  return chakra::HasTooLongDuration(trace, node);
}

// Returns the number of `value` among the values so far, adding it if it is new.
uint32_t NumberAmong(std::vector<int64_t>& values, std::unordered_map<int64_t, uint32_t>& numbers,
                     int64_t value) {
  const auto [found, is_new] = numbers.emplace(value, static_cast<uint32_t>(values.size()));
  if (is_new) values.push_back(value);
  return found->second;
}

}  // namespace

void WarnOfIds(const Trace& trace, const std::string& path, const RunContext& context) {
  if (const size_t dangling = trace.dangling().size(); dangling > 0) {
    context.Warn(fmt::format("{}: nodes depend on {} missing nodes", path, dangling));
  }
  if (trace.stats()[Stat::kDuplicateId] == 0) return;
  std::vector<uint64_t> ids;
  ForEachNode(trace, [&](NodeId node) { ids.push_back(trace.source_id(node)); });
  std::ranges::sort(ids);
  const auto repeated = std::ranges::adjacent_find(ids);
  if (repeated == ids.end()) return;
  context.Warn(fmt::format("{}: several nodes have the id {}; dependencies on it mean the first",
                           path, *repeated));
}

Result<SimRank> MakeSimRank(const Trace& trace) {
  std::vector<SimPartners> comms;
  comms.reserve(trace.node_count());
  ForEachNode(trace, [&](NodeId node) { comms.push_back(StatedPartners(trace, node)); });
  return MakeSimRank(trace, comms);
}

Result<SimRank> MakeSimRank(const Trace& trace, std::span<const SimPartners> comms) {
  if (!trace.is_acyclic()) {
    return BadInput(
        fmt::format("found a cycle of dependencies, expected none: {}", CycleText(trace)));
  }
  SimRank rank;
  SimProgram program;
  const size_t count = trace.node_count();
  program.host_computes = HostComputes(trace);
  program.nodes.reserve(count);
  program.source_ids.reserve(count);
  program.origin.reserve(count);
  ForEachNode(trace, [&](NodeId node) { program.origin.push_back(node); });
  std::ranges::stable_sort(program.origin, {}, [&](NodeId node) { return trace.source_id(node); });
  std::vector<uint32_t> index(count);
  for (size_t i = 0; i < count; ++i) {
    index[program.origin[i].index()] = static_cast<uint32_t>(i);
  }
  program.waits.resize(count);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  std::unordered_map<int64_t, uint32_t> groups;
  std::unordered_map<int64_t, uint32_t> peers;
  std::vector<uint32_t> befores;
  for (size_t i = 0; i < count; ++i) {
    const NodeId node = program.origin[i];
    SimNode& made = program.nodes.emplace_back(NodeOf(trace, node, program.host_computes));
    const SimPartners& comm = comms[node.index()];
    if (made.kind == NodeKind::kCompute && TakesTooLong(trace, node)) {
      return BadInput(
          fmt::format("node {}: found a duration of more than three years", trace.source_id(node)));
    }
    if (made.kind == NodeKind::kCollective && comm.group != 0) {
      made.group = 1 + NumberAmong(rank.groups, groups, comm.group);
    }
    if (made.kind == NodeKind::kSend || made.kind == NodeKind::kRecv) {
      made.peer = NumberAmong(rank.peers, peers, comm.peer);
    }
    program.source_ids.push_back(trace.source_id(node));
    befores.clear();
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
  rank.program = std::make_shared<const SimProgram>(std::move(program));
  return rank;
}

std::vector<size_t> GroupSlotsOf(const SimRank& rank, const RankGroups& groups, int64_t total) {
  std::vector<size_t> slots = {kFirstGroupSlot};
  size_t next = 0;
  for (const int64_t group : rank.groups) {
    const auto found = groups.find(group);
    const bool is_all = group == 0 || (found != groups.end() && std::ssize(found->second) == total);
    slots.push_back(kFirstGroupSlot + (is_all ? 0 : 1 + next++ % (kGroupSlots - 1)));
  }
  return slots;
}

}  // namespace etude
