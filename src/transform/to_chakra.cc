#include "src/transform/to_chakra.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/formats/read_trace.h"
#include "src/run/exclusive_times.h"
#include "src/run/recorded_run.h"
#include "src/run/waits/acyclic.h"
#include "src/run/waits/host_times.h"
#include "src/run/waits/program_order.h"
#include "src/trace/carried_stats.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace_copy.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

class Converter {
 public:
  Converter(const Trace& trace, const ToChakraOptions& options)
      : trace_(trace),
        options_(options),
        run_(trace),
        builder_(options.limits, trace),
        copy_(trace, builder_) {}

  Result<ToChakraResult> Run() {
    if (trace_.traits().is_profile) {
      return BadInput(
          "found only a device trace (Kineto), expected a host or linked trace; `etude link` joins "
          "host and device traces, " +
          std::string(kRecordHint));
    }
    if (!trace_.is_acyclic() && !options_.break_cycles) {
      return BadInput("found a cycle of dependencies: " + CycleText(trace_));
    }
    copy_.CopyInfo();
    copy_.AddGroups();
    copy_.AddStats();
    builder_.info().SetFormat(TraceFormat::kChakra);
    PlanIds();
    if (result_.renumbered) ForgetParts(builder_);
    orphans_ = ThreadsOfOrphans(trace_);
    FindDurations();
    FindDeviceComms();
    builder_.AddNodesOfBase();
    ForEachNode(trace_, [&](NodeId node) { ChangeNode(node); });
    CollectEdges();
    AddEdges();
    AddDangling();
    copy_.CountRenumbered();
    if (!trace_.traits().states_order || result_.renumbered) CarryStats(builder_);
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

 private:
  void PlanIds() {
    result_.renumbered = trace_.stats()[Stat::kDuplicateId] != 0;
    next_dangling_ = trace_.node_count();
  }
  uint64_t IdOf(NodeId node) const {
    return result_.renumbered ? node.value() : trace_.source_id(node);
  }

  // Finds changed exclusive durations. They exclude waits of host threads for each other, which
  // dependencies represent. Waits for devices are inside calls, which linking removes.
  void FindDurations() {
    waits_ = run_.waits();
    if (trace_.traits().exclusive_durations || trace_.traits().states_order) return;
    const bool on_device =
        AnyNode([&](NodeId node) { return trace_.place(node) == Place::kDevice; });
    if (const HostTimes* host = on_device ? nullptr : run_.host_times()) {
      ForEachNode(trace_, [&](NodeId node) { exclusive_.push_back(host->own(node)); });
      return;
    }
    const auto lacks = [&](NodeId node) {
      return trace_.duration(node) && !trace_.exclusive(node);
    };
    if (!AnyNode(lacks)) return;
    exclusive_ = FindExclusiveTimes(trace_, NodeTimesOf(trace_)).times;
    ForEachNode(trace_, [&](NodeId node) {
      if (!lacks(node)) exclusive_[node.index()] = std::nullopt;
    });
  }

  bool AnyNode(auto is_one) const {
    bool any = false;
    ForEachNode(trace_, [&](NodeId node) { any = any || is_one(node); });
    return any;
  }

  // Finds host nodes with a communicating device node below.
  void FindDeviceComms() {
    on_device_.assign(trace_.node_count(), false);
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.place(node) != Place::kDevice || !IsCommunication(trace_.kind(node))) return;
      NodeId above = trace_.parent(node);
      while (above && !on_device_[above.index()]) {
        on_device_[above.index()] = true;
        above = trace_.parent(above);
      }
    });
  }

  void ChangeNode(NodeId node) {
    if (result_.renumbered) builder_.SetSourceId(node, IdOf(node));
    const NodeId thread = orphans_[node.index()];
    if (thread && !trace_.parent(node)) {
      builder_.SetParent(node, thread);
      ++result_.adopted;
    }
    if (!exclusive_.empty()) {
      builder_.SetTimes(node, std::nullopt, std::nullopt, exclusive_[node.index()]);
    }
    const bool retype = trace_.place(node) == Place::kHost && IsCommunication(trace_.kind(node)) &&
                        on_device_[node.index()];
    if (retype) {
      builder_.SetKind(node, NodeKind::kOperator);
      ++result_.retyped;
    }
  }

  // The trace's own edges come first: edges that contradict them are not added.
  void CollectEdges() {
    ForEachNode(trace_, [&](NodeId node) {
      const auto deps = trace_.deps(node);
      const auto kinds = trace_.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) {
        // A sync dependency is also one of Chakra's data dependencies.
        const auto is_said = [&](size_t k) {
          return deps[k] == deps[i] && kinds[k] == DepKind::kSync;
        };
        const bool again = kinds[i] == DepKind::kData &&
                           std::ranges::any_of(std::views::iota(size_t{0}, deps.size()), is_said);
        if (!again) edges_.push_back({node, deps[i], ReasonOf(kinds[i])});
      }
    });
    if (!trace_.is_acyclic()) {
      result_.broken_edges = Drop(0, FindBackwardEdges(trace_, edges_));
    }
    const size_t given = edges_.size();
    if (trace_.traits().states_order) return;
    for (const OrderEdge& edge : HostOrder(trace_)) {
      AddOrder(edge, result_.order_edges);
    }
    for (const OrderEdge& edge : StreamOrder(trace_)) {
      AddOrder(edge, result_.stream_edges);
    }
    for (const OrderEdge& wait : waits_) AddOrder(wait, result_.thread_edges);
    if (edges_.size() != given) {
      result_.contradictions = Drop(given, FindContradictions(trace_, edges_, given));
    }
    // A dependency on the parent is no contradiction: a node waits for it anyway.
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId parent = trace_.parent(node);
      if (trace_.place(node) != Place::kDevice || !parent) return;
      AddOrder({node, parent, OrderReason::kLaunch}, result_.launch_edges);
    });
  }

  void AddOrder(const OrderEdge& edge, uint64_t& count) {
    if (std::ranges::count(trace_.deps(edge.node), edge.before) != 0) return;
    edges_.push_back(edge);
    ++count;
  }

  // Removes the flagged edges from number `first` on; returns their number.
  uint64_t Drop(size_t first, const std::vector<bool>& flags) {
    size_t kept = first;
    for (size_t i = first; i < edges_.size(); ++i) {
      if (!flags[i]) edges_[kept++] = edges_[i];
    }
    const uint64_t dropped = edges_.size() - kept;
    edges_.resize(kept);
    return dropped;
  }

  void AddEdges() {
    for (const OrderEdge& edge : edges_) {
      builder_.AddDep(edge.node, edge.before, KindOf(edge.reason));
    }
  }

  void AddDangling() {
    for (const Trace::Dangling& dangling : trace_.dangling()) {
      if (dangling.is_parent && orphans_[dangling.node.index()]) continue;
      // The reference to an existing parent was removed from a cycle: it stays removed.
      if (trace_.Find(dangling.source_id)) continue;
      const uint64_t id = result_.renumbered ? next_dangling_++ : dangling.source_id;
      if (dangling.is_parent) {
        builder_.SetParent(dangling.node, id);
      } else {
        builder_.AddDep(dangling.node, id, dangling.kind);
      }
    }
  }

  const Trace& trace_;
  const ToChakraOptions& options_;
  RecordedRun run_;
  TraceBuilder builder_;
  TraceCopy copy_;
  ToChakraResult result_;
  std::span<const OrderEdge> waits_;  // beyond the dependencies
  std::vector<std::optional<Nanos>> exclusive_;
  std::vector<NodeId> orphans_;  // by node: its adopting thread
  std::vector<bool> on_device_;
  std::vector<OrderEdge> edges_;
  uint64_t next_dangling_ = 0;
};

}  // namespace

Result<ToChakraResult> ToChakra(const Trace& trace, const ToChakraOptions& options) {
  return Converter(trace, options).Run();
}

}  // namespace etude
