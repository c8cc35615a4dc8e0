#include "src/run/calls/comm_log.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"
#include "src/run/activity.h"
#include "src/run/calls/callers.h"
#include "src/run/calls/carried_calls.h"
#include "src/trace/simulated.h"
#include "src/trace/words/machine_clock.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns, for each node, whether it is below a communication.
std::vector<std::optional<bool>> BelowCommunication(const Trace& trace) {
  std::vector<std::optional<bool>> below(trace.node_count());
  std::vector<NodeId> way;
  ForEachNode(trace, [&](NodeId node) {
    // Walks up to the first decided node, and back.
    NodeId at = node;
    for (; at && !below[at.index()]; at = trace.parent(at)) way.push_back(at);
    for (; !way.empty(); way.pop_back()) {
      const NodeId above = trace.parent(way.back());
      below[way.back().index()] =
          above && (IsCommunication(trace.kind(above)) || *below[above.index()]);
    }
  });
  return below;
}

// Returns the call that a backend's thread works for, or the node itself. Gloo's threads may start
// work in another order than that of issue.
NodeId IssuerOf(const Trace& trace, NodeId node) {
  const NodeId issuer = IssuerOfLabel(trace, node);
  return issuer ? issuer : node;
}

// Returns the operator that names the call: the one called by the program, a few levels above.
NodeId OperatorOf(const Trace& trace, NodeId node) {
  constexpr int kMostLevels = 8;
  NodeId at = IssuerOf(trace, node);
  for (int level = 0; at && level < kMostLevels; ++level, at = trace.parent(at)) {
    if (IsC10dOperator(trace.name(at))) return at;
  }
  return node;
}

// Returns true if a group without a list of ranks contains all ranks of the job. An unnamed group
// is the only one, unless the trace has a smaller one.
bool IsOfAll(const Trace& trace, StringId name) {
  const auto has_all = [&](const ProcessGroup& group) { return trace.HasAllRanks(group); };
  if (!name) return std::ranges::all_of(trace.process_groups(), has_all);
  const ProcessGroup* group = trace.FindGroup(name);
  return group != nullptr && has_all(*group);
}

// Numbers of the steps with timed marks, by begin.
class StepNumbers {
 public:
  explicit StepNumbers(const Trace& trace) {
    for (const StepWindow& step : FindSteps(trace)) {
      const auto number = ParseWhole(step.name.substr(kStepMark.size()));
      if (number) steps_.emplace(step.window.begin, *number);
    }
  }

  std::vector<int64_t> All() const {
    std::set<int64_t> all;
    for (const auto& [begin, number] : steps_) all.insert(number);
    return {all.begin(), all.end()};
  }
  // Returns nullopt before the first step and at an unknown time.
  std::optional<int64_t> At(std::optional<Nanos> moment) const {
    if (!moment) return std::nullopt;
    const auto next = steps_.upper_bound(*moment);
    return next == steps_.begin() ? std::nullopt : std::optional(std::prev(next)->second);
  }

 private:
  std::map<Nanos, int64_t> steps_;
};

}  // namespace

std::vector<CommNode> CommNodes(const Trace& trace) {
  const std::vector<std::optional<bool>> below = BelowCommunication(trace);
  const CarriedCalls carried(trace);
  std::vector<CommNode> nodes;
  std::set<std::string_view> device_groups;
  for (const auto& [node, comm] : trace.comms()) {
    if (!IsCommunication(trace.kind(node)) || carried.IsCarrier(node)) continue;
    nodes.push_back({.node = node, .carrier = carried.CarrierOf(node)});
    if (trace.place(node) == Place::kDevice) device_groups.insert(trace.text(comm.group));
  }
  // A missing group may be any group.
  const bool any_group = device_groups.contains("");
  std::erase_if(nodes, [&](const CommNode& one) {
    const NodeId node = one.node;
    if (one.carrier || trace.place(node) == Place::kDevice) return false;
    const std::string_view group = trace.text(trace.comm(node)->group);
    if (any_group || device_groups.contains(group)) return true;
    if (group.empty() && !device_groups.empty()) return true;
    return *below[node.index()];
  });
  return nodes;
}

std::optional<Nanos> CommDuration(const Trace& trace, const CommNode& one) {
  if (StandsForLostLabel(trace, one.work())) return std::nullopt;
  return trace.duration(one.work());
}

std::string_view CommTypeName(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  return kind == NodeKind::kCollective ? Name(trace.comm(node)->type) : Name(kind);
}

std::string_view CommCall::TypeName() const {
  return type == CollectiveType::kUnknown && !name.empty() ? std::string_view(name) : Name(type);
}

std::string CommCall::Text(const CommLog& log) const {
  if (kind == NodeKind::kSend || kind == NodeKind::kRecv) {
    const std::string_view way = kind == NodeKind::kSend ? "send to" : "recv from";
    std::string text =
        peer ? fmt::format("{} rank {}", way, *peer) : fmt::format("{} an unknown rank", way);
    if (tag) text += fmt::format(" (tag {})", *tag);
    return text;
  }
  const CommLog::Group& in = log.groups[group];
  const bool is_known = type != CollectiveType::kUnknown || !name.empty();
  std::string text = fmt::format("{} #{}", is_known ? TypeName() : "collective", index);
  if (!in.name.empty()) text += fmt::format(" of group '{}'", in.name);
  return text;
}

std::string UngroupedText(uint64_t count) {
  return FormatCount(count, "collective has", "collectives have") +
         " no process group in the trace, and are treated as collectives of all ranks; record with "
         "`etude record --recorder native` to include the group";
}

CommLog ReadCommLog(const Trace& trace, int64_t rank) {
  CommLog log;
  log.rank = rank;
  log.world_size = trace.info().world_size;
  log.job_clock = IsSimulated(trace);
  log.clock = MachineClockOf(trace);
  log.base = BaseTimeOf(trace);
  log.untimed = true;
  ForEachNode(trace, [&](NodeId node) { log.untimed = log.untimed && !trace.start(node); });
  std::map<StringId, size_t> group_of;
  const auto group = [&](StringId name) {
    const auto [at, added] = group_of.emplace(name, log.groups.size());
    if (added) {
      CommLog::Group& entry = log.groups.emplace_back();
      if (name) entry.name = trace.text(name);
      if (const ProcessGroup* known = trace.FindGroup(name)) {
        const auto ranks = trace.ints(known->ranks);
        entry.ranks.assign(ranks.begin(), ranks.end());
        std::ranges::sort(entry.ranks);
      }
      entry.is_all = entry.ranks.empty() && IsOfAll(trace, name);
    }
    return at->second;
  };
  std::vector<CommNode> nodes = CommNodes(trace);
  const auto begin_of = [&](const CommNode& one) {
    return trace.start(IssuerOf(trace, one.work()));
  };
  const bool timed =
      std::ranges::all_of(nodes, [&](const CommNode& one) { return begin_of(one).has_value(); });
  std::ranges::sort(nodes, {}, [&](const CommNode& one) {
    const NodeId issuer = IssuerOf(trace, one.node);
    return std::tuple(timed ? *begin_of(one) : Nanos{}, trace.source_id(issuer), one.node);
  });
  const bool has_smaller =
      std::ranges::any_of(trace.process_groups(), [&](const ProcessGroup& one) {
        const int64_t size = trace.GroupSize(one).value_or(0);
        return size > 1 && size < trace.info().world_size.value_or(0);
      });
  const StepNumbers steps(trace);
  log.steps = steps.All();
  std::optional<Launches> launches;
  if (!log.steps.empty()) launches.emplace(trace);
  std::vector<uint64_t> next;
  for (const CommNode& one : nodes) {
    const NodeId node = one.node;
    const NodeId work = one.work();
    const Comm& comm = *trace.comm(node);
    CommCall call;
    call.kind = trace.kind(node);
    call.type = comm.type;
    if (comm.name) call.name = trace.text(comm.name);
    call.group = group(comm.group);
    call.bytes = comm.bytes;
    call.uneven = !trace.ints(comm.in_split).empty() || !trace.ints(comm.out_split).empty();
    call.peer = comm.peer(call.kind);
    call.tag = comm.tag;
    call.node = trace.source_id(OperatorOf(trace, node));
    call.row = work;
    call.facts = node;
    const std::optional<Nanos> duration = CommDuration(trace, one);
    if (trace.start(work) && duration) {
      call.begin = *trace.start(work);
      call.end = *trace.start(work) + *duration;
    }
    if (launches) {
      const bool on_device = trace.place(work) == Place::kDevice;
      call.step = steps.At(on_device ? launches->time(work) : begin_of(one));
    }
    next.resize(log.groups.size());
    if (call.kind == NodeKind::kCollective) {
      call.index = next[call.group]++;
      if (!comm.group && has_smaller) ++log.ungrouped;
    }
    log.calls.push_back(std::move(call));
  }
  return log;
}

}  // namespace etude
