#include "src/transform/runnable/runnable_rank.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/formats/chakra/chakra_attr.h"
#include "src/run/calls/callers.h"
#include "src/run/calls/carried_calls.h"
#include "src/run/waits/host_times.h"
#include "src/run/waits/program_order.h"
#include "src/trace/simulated.h"
#include "src/trace/validator.h"
#include "src/transform/edit/contraction.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {
namespace {

bool IsMemory(NodeKind kind) { return kind == NodeKind::kMemLoad || kind == NodeKind::kMemStore; }

bool IsHostWork(NodeKind kind) {
  return kind == NodeKind::kOperator || kind == NodeKind::kLabel || kind == NodeKind::kRuntime ||
         kind == NodeKind::kCompute;
}

// Divides `total` by weight into whole numbers with the same sum.
class Shares {
 public:
  Shares(uint64_t total, double weight) : total_(static_cast<double>(total)), weight_(weight) {}
  uint64_t Next(double weight) {
    sum_ += weight;
    const auto until = static_cast<uint64_t>(weight_ > 0 ? total_ * (sum_ / weight_) : total_);
    const uint64_t share = until - given_;
    given_ = until;
    return share;
  }

 private:
  double total_;
  double weight_;
  double sum_ = 0;
  uint64_t given_ = 0;
};

// Returns the stated cost of a compute node that was made for ASTRA-sim.
std::optional<OperatorCost> StatedCost(const Trace& trace, NodeId node) {
  const auto ops = chakra::StatedUnsigned(trace, node, "num_ops");
  const auto bytes = chakra::StatedUnsigned(trace, node, "tensor_size");
  if (!ops || !bytes) return std::nullopt;
  return OperatorCost{.ops = *ops, .bytes = *bytes};
}

class RankMaker {
 public:
  RankMaker(const Trace& trace, const RunnableRankOptions& options)
      : trace_(trace), options_(options), carried_(trace) {}

  Result<RunnableRank> Run() {
    rank_.rank = trace_.info().rank;
    rank_.world_size = trace_.info().world_size;
    rank_.on_device = HasDeviceWork();
    AddGroups();
    // Dependencies of a Chakra trace contain all waits, so times are not needed.
    if (!rank_.on_device && !HostComputes(trace_)) times_ = HostTimes::Find(trace_, {});
    if (times_ && options_.compute != RunnableCompute::kFlops) stretches_ = &times_->stretches();
    PlanOrder();
    if (order_.size() != trace_.node_count()) {
      return BadInput("found a cycle of dependencies, expected none: " + CycleText(trace_));
    }
    Choose();
    if (options_.compute == RunnableCompute::kFlops) FindCosts();
    ETUDE_RETURN_IF_ERROR(AddNodes());
    return std::move(rank_);
  }

 private:
  bool IsDevice(NodeId node) const {
    return trace_.place(node) != Place::kHost && IsDeviceWork(trace_.kind(node)) &&
           !IsCommunication(trace_.kind(node)) && !IsMemory(trace_.kind(node));
  }

  bool HasDeviceWork() const {
    bool found = false;
    ForEachNode(trace_, [&](NodeId node) {
      const bool comm = trace_.place(node) == Place::kDevice && IsCommunication(trace_.kind(node));
      found |= comm || IsDevice(node);
    });
    return found;
  }

  void AddGroups() {
    for (const ProcessGroup& group : trace_.process_groups()) {
      groups_.emplace(group.name, static_cast<uint32_t>(rank_.groups.size()));
      RunnableGroup copy{.name = std::string(trace_.text(group.name)), .size = group.size};
      if (group.ranks) {
        const auto ranks = trace_.ints(group.ranks);
        copy.ranks.emplace(ranks.begin(), ranks.end());
      }
      rank_.groups.push_back(std::move(copy));
    }
  }

  std::optional<Nanos> OwnTime(NodeId node) const {
    return times_ ? times_->own(node) : StatedOwnTime(trace_, node);
  }
  // Returns the own time without the stretches that become separate nodes.
  std::optional<Nanos> OwnTimeAtOnce(NodeId node) const {
    const auto own = OwnTime(node);
    if (!own || stretches_ == nullptr) return own;
    const auto found = stretches_->of_label.find(node);
    return found == stretches_->of_label.end() ? own : std::max(*own - found->second, Nanos{});
  }

  // Calls `fn` for each predecessor of `node`.
  template <typename Fn>
  void ForEachDep(NodeId node, Fn fn) const {
    if (times_) {
      if (const NodeId before = times_->before(node)) fn(before);
      const NodeId issuer = IssuerOfLabel(trace_, node);
      if (issuer && times_->Precedes(issuer, node)) fn(issuer);
    } else if (const NodeId parent = trace_.parent(node)) {
      fn(parent);
    }
    // By time, nodes follow those of their own thread, and what their thread waited for.
    const auto deps = times_ ? times_->awaited(node) : trace_.deps(node);
    std::ranges::for_each(deps, fn);
  }

  // Orders nodes after their dependencies. Of the ready nodes, the one that began first comes
  // first. Work of a backend's thread counts as begun with its call: such threads may begin their
  // work in another order on each rank.
  void PlanOrder() {
    std::vector<std::pair<NodeId, NodeId>> edges;
    std::vector<uint32_t> waits(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      ForEachDep(node, [&](NodeId dep) {
        edges.emplace_back(dep, node);
        ++waits[node.index()];
      });
    });
    const auto dependents = Csr<NodeId>::Build(
        trace_.node_count(), edges, [](const auto& edge) { return edge.first.index(); },
        [](const auto& edge) { return edge.second; });
    using Entry = std::tuple<int64_t, uint64_t, NodeId>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto push = [&](NodeId node) {
      const NodeId issuer = IssuerOfLabel(trace_, node);
      const auto start = trace_.start(issuer ? issuer : node);
      ready.emplace(start.value_or(Nanos{INT64_MIN}).count, trace_.source_id(node), node);
    };
    ForEachNode(trace_, [&](NodeId node) {
      if (waits[node.index()] == 0) push(node);
    });
    while (!ready.empty()) {
      const NodeId node = std::get<NodeId>(ready.top());
      ready.pop();
      order_.push_back(node);
      for (const NodeId next : dependents[node.index()]) {
        if (--waits[next.index()] == 0) push(next);
      }
    }
  }

  // Chooses the nodes to keep.
  void Choose() {
    keep_.assign(trace_.node_count(), false);
    ForEachNode(trace_, [&](NodeId node) {
      // The node runs with its kernel.
      if (carried_.CarrierOf(node)) return;
      const auto why = WhyNot(node);
      keep_[node.index()] = !why;
      if (!why) return;
      rank_.notes.Count(*why);
      if (*why == RunnableNote::kHostWork) {
        rank_.host_time = rank_.host_time + OwnTime(node).value_or(Nanos{});
      }
    });
  }

  std::optional<RunnableNote> WhyNot(NodeId node) const {
    const NodeKind kind = trace_.kind(node);
    if (IsCommunication(kind)) return std::nullopt;
    if (IsMemory(kind)) return RunnableNote::kMemory;
    if (rank_.on_device && IsDevice(node)) return std::nullopt;
    if (!IsHostWork(kind)) return RunnableNote::kNoWork;
    if (rank_.on_device) return RunnableNote::kHostWork;
    const auto own = OwnTimeAtOnce(node);
    if (own) return own->count > 0 ? std::nullopt : std::optional(RunnableNote::kIdleHost);
    // Its time is unknown, so only the innermost operators are kept.
    const bool innermost = kind == NodeKind::kOperator && trace_.children(node).empty();
    return innermost && !times_ ? std::nullopt : std::optional(RunnableNote::kIdleHost);
  }

  // Finds operations and bytes of each kept node. Device work divides those of its operator by
  // time.
  void FindCosts() {
    costs_.assign(trace_.node_count(), std::nullopt);
    const auto operators = OperatorCosts(trace_);
    std::map<NodeId, std::vector<NodeId>> launched;
    for (const NodeId node : order_) {
      if (!keep_[node.index()] || IsCommunication(trace_.kind(node))) continue;
      if (const auto stated = StatedCost(trace_, node)) {
        costs_[node.index()] = stated;
        continue;
      }
      if (!rank_.on_device) {
        const auto& cost = operators[node.index()];
        if (cost) costs_[node.index()] = cost->done_below ? OperatorCost{} : *cost;
        continue;
      }
      NodeId above = trace_.parent(node);
      while (above && !operators[above.index()]) above = trace_.parent(above);
      if (above) launched[above].push_back(node);
    }
    for (const auto& [op, kernels] : launched) {
      const auto weight = [&](NodeId node) {
        return static_cast<double>(trace_.duration(node).value_or(Nanos{}).count) + 1;
      };
      double sum = 0;
      for (const NodeId node : kernels) sum += weight(node);
      Shares ops(operators[op.index()]->ops, sum);
      Shares bytes(operators[op.index()]->bytes, sum);
      for (const NodeId node : kernels) {
        costs_[node.index()] =
            OperatorCost{.ops = ops.Next(weight(node)), .bytes = bytes.Next(weight(node))};
      }
    }
  }

  Status AddNodes() {
    part_of_.resize(trace_.node_count());
    std::vector<uint32_t> deps;
    for (const NodeId node : order_) {
      deps.clear();
      ForEachDep(node, [&](NodeId dep) { deps.push_back(part_of_[dep.index()]); });
      if (stretches_ != nullptr) AddStretchesBefore(node, deps);
      const uint32_t part = AddPart(deps, keep_[node.index()] ? node : NodeId::None());
      part_of_[node.index()] = part;
      if (stretches_ != nullptr) AddStretch(stretches_->behind, node, std::array{part});
      if (contraction_.size() + rank_.deps.size() > options_.limits.edges) {
        return BadInput(
            "found more dependencies than the limit 'edges' allows after removal of host nodes");
      }
    }
    return {};
  }

  // Inserts the time in labels between a node and its predecessors on its own and other threads.
  void AddStretchesBefore(NodeId node, std::vector<uint32_t>& deps) {
    const NodeId before = times_->before(node);
    std::optional<uint32_t> part;
    if (before) part = AddStretch(stretches_->ahead, node, std::array{part_of_[before.index()]});
    if (part) deps.push_back(*part);
    part = AddStretch(stretches_->woken, node, deps);
    if (part) deps.assign(1, *part);
  }

  std::optional<uint32_t> AddStretch(
      const std::unordered_map<NodeId, HostTimes::Stretch>& stretches, NodeId node,
      std::span<const uint32_t> deps) {
    const auto found = stretches.find(node);
    if (found == stretches.end()) return std::nullopt;
    return AddPart(deps, found->second.label, found->second.time);
  }

  // Adds `node`, or a stretch of `time` in it, after other parts, and returns its number; kNone if
  // it is not kept.
  uint32_t AddPart(std::span<const uint32_t> deps, NodeId node, std::optional<Nanos> time = {}) {
    const auto now = contraction_.Add(deps, static_cast<bool>(node));
    const auto begin = static_cast<uint32_t>(rank_.nodes.size());
    if (node) {
      std::vector<uint32_t> nodes;
      for (const uint32_t dep : now) {
        const auto [first, end] = made_of_[dep];
        for (uint32_t made = first; made < end; ++made) nodes.push_back(made);
      }
      if (time) {
        RunnableNode made = MakeNode(node);
        made.name = NameOfStretch(node);
        made.start.reset();
        made.duration = time;
        Append(made, nodes);
      } else {
        AppendNode(node, nodes);
      }
    }
    made_of_.emplace_back(begin, static_cast<uint32_t>(rank_.nodes.size()));
    return static_cast<uint32_t>(made_of_.size() - 1);
  }

  void AppendNode(NodeId node, const std::vector<uint32_t>& deps) {
    const RunnableNode at = MakeNode(node);
    if (!carried_.IsCarrier(node)) Append(at, deps);
    for (const NodeId call : carried_.CallsOf(node)) {
      RunnableNode made = MakeNode(call);
      made.device = at.device;
      made.stream = at.stream;
      made.lane = at.lane;
      made.start = at.start;
      Append(made, deps);
    }
  }

  void Append(const RunnableNode& node, const std::vector<uint32_t>& deps) {
    rank_.deps.insert(rank_.deps.end(), deps.begin(), deps.end());
    rank_.dep_ends.push_back(rank_.deps.size());
    rank_.nodes.push_back(node);
  }

  RunnableNode MakeNode(NodeId node) {
    RunnableNode made;
    made.kind = trace_.kind(node);
    made.origin = node;
    made.name = NameOf(node);
    if (const LaneId lane = trace_.lane_id(node)) {
      made.lane = lane.value();
      made.device = trace_.lane(lane).device;
      made.stream = trace_.lane(lane).stream;
    }
    made.start = trace_.start(node);
    made.duration = OwnTimeAtOnce(node);
    if (made.duration && made.duration->count < 0) made.duration.reset();
    if (IsCommunication(made.kind)) {
      AddComm(node, made);
      return made;
    }
    if (!made.duration) rank_.notes.Count(RunnableNote::kUnknownTime);
    if (options_.compute == RunnableCompute::kFlops) AddCost(node, made);
    return made;
  }

  void AddComm(NodeId node, RunnableNode& made) {
    const Comm* comm = trace_.comm(node);
    if (comm == nullptr) return;
    made.type = comm->type;
    if (comm->bytes) made.bytes_in = comm->bytes->count;
    const auto element = ElementBytes(comm->dtype);
    int64_t bytes = 0;
    if (comm->out_elements && element &&
        !__builtin_mul_overflow(*comm->out_elements, *element, &bytes)) {
      made.bytes_out = bytes;
    }
    made.group_size = comm->group_size;
    made.root = comm->root;
    made.peer = comm->peer(made.kind);
    made.tag = comm->tag;
    if (!comm->group) return;
    const auto [known, added] =
        groups_.emplace(comm->group, static_cast<uint32_t>(rank_.groups.size()));
    if (added) rank_.groups.push_back({.name = std::string(trace_.text(comm->group))});
    made.group = known->second;
  }

  void AddCost(NodeId node, RunnableNode& made) {
    const auto& cost = costs_[node.index()];
    if (!cost) {
      rank_.notes.Count(RunnableNote::kNoShapes);
    } else if (cost->bytes == 0) {
      rank_.notes.Count(RunnableNote::kNoOps);
    }
    made.ops = std::max<uint64_t>(cost ? cost->ops : 0, 1);
    made.bytes = std::max<uint64_t>(cost ? cost->bytes : 0, 1);
  }

  uint32_t NameOf(NodeId node) {
    const auto [known, added] =
        names_.emplace(trace_.name_id(node), static_cast<uint32_t>(rank_.names.size()));
    if (added) rank_.names.emplace_back(trace_.name(node));
    return known->second;
  }
  // Do not use the label's own name: this would be a second label, and a mark of another step.
  uint32_t NameOfStretch(NodeId label) {
    const auto [known, added] =
        stretch_names_.emplace(trace_.name_id(label), static_cast<uint32_t>(rank_.names.size()));
    if (added) rank_.names.push_back("in " + std::string(trace_.name(label)));
    return known->second;
  }

  const Trace& trace_;
  const RunnableRankOptions& options_;
  CarriedCalls carried_;
  RunnableRank rank_;
  std::optional<HostTimes> times_;  // for traces without device work, if times are known
  const HostTimes::Stretches* stretches_ = nullptr;  // used if times count
  std::vector<NodeId> order_;
  std::vector<bool> keep_;
  std::vector<std::optional<OperatorCost>> costs_;
  std::map<StringId, uint32_t> names_;
  std::map<StringId, uint32_t> stretch_names_;
  std::map<StringId, uint32_t> groups_;
  Contraction contraction_;
  std::vector<uint32_t> part_of_;                       // by node
  std::vector<std::pair<uint32_t, uint32_t>> made_of_;  // by part: range of the rank's nodes
};

}  // namespace

Result<RunnableRank> MakeRunnableRank(const Trace& trace, const RunnableRankOptions& options) {
  return RankMaker(trace, options).Run();
}

}  // namespace etude
