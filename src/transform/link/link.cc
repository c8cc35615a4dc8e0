#include "src/transform/link/link.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/formats/json/json_text.h"
#include "src/run/calls/launch.h"
#include "src/run/exclusive_times.h"
#include "src/run/waits/acyclic.h"
#include "src/run/waits/program_order.h"
#include "src/run/waits/sync_edges.h"
#include "src/run/waits/thread_edges.h"
#include "src/trace/carried_stats.h"
#include "src/trace/trace_copy.h"
#include "src/transform/link/right_nesting.h"

namespace etude {
namespace {

// Returns one number for the two ends of a dependency.
uint64_t PairOf(NodeId node, NodeId dep) { return uint64_t{node.value()} << 32 | dep.value(); }

class Linker {
 public:
  // `wrong`: numbers of timed dependencies that contradicted others in a first run.
  Linker(const Trace& host, const Trace& device, const LinkOptions& options,
         const std::unordered_set<size_t>& wrong)
      : host_(host),
        device_(device),
        options_(options),
        wrong_(wrong),
        builder_(options.limits, host),
        copy_host_(host, builder_),
        copy_device_(device, builder_) {}

  Result<LinkResult> Run() {
    ETUDE_RETURN_IF_ERROR(SetInfo());
    orphans_ = ThreadsOfOrphans(host_);
    host_match_ = MatchHost(host_, device_);
    device_match_ = MatchDevice(device_, host_match_.nodes);
    syncs_ = FindSyncEdges(device_, device_match_);
    Account();
    OrderNodes();
    PlanIds();
    LearnLanes();
    TimeHostNodes();
    builder_.Reserve(host_order_.size() + device_order_.size());
    new_of_host_.resize(host_.node_count());
    for (size_t i = 0; i < host_order_.size(); ++i) {
      new_of_host_[host_order_[i].index()] = NodeId::FromIndex(i);
    }
    new_of_device_.resize(device_.node_count());
    for (const NodeId node : host_order_) AddHostNode(node);
    for (const NodeId event : device_order_) AddDeviceNode(event);
    AddDependencies();
    AddTimedEdges();
    CarryStats(builder_);
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

  // Dependencies from measured times, in the order in which `wrong` numbers them; nodes are those
  // of the new trace.
  const std::vector<OrderEdge>& timed_edges() const { return timed_edges_; }

 private:
  Status SetInfo() {
    const TraceInfo& host = host_.info();
    const TraceInfo& device = device_.info();
    if (host.rank && device.rank && host.rank != device.rank) {
      return BadInput("the host trace is of rank " + std::to_string(*host.rank) +
                      ", the device trace of rank " + std::to_string(*device.rank));
    }
    if (device_.stats()[Stat::kSharedNumber] != 0) {
      return BadInput("found processes of several ranks in the device trace, expected one rank");
    }
    copy_host_.CopyInfo();
    TraceInfo& info = builder_.info();
    info.SetFormat(TraceFormat::kLinked);
    info.traits.exclusive_durations = false;
    info.rank = host.rank ? host.rank : device.rank;
    info.world_size = host.world_size ? host.world_size : device.world_size;
    for (const Extra& extra : device.extras) {
      const Extra copy = copy_device_.MakeExtra(extra);
      if (std::ranges::count(info.extras, copy.key, &Extra::key) == 0) info.extras.push_back(copy);
    }
    for (TraceCopy* copy : {&copy_host_, &copy_device_}) {
      copy->AddGroups();
      copy->AddStats();
    }
    copy_host_.CountRenumbered();
    return {};
  }

  void Account() {
    for (const HostLink link : host_match_.links) ++result_.host[static_cast<size_t>(link)];
    for (const EventLink link : device_match_.links) ++result_.events[static_cast<size_t>(link)];
    result_.syncs = syncs_.calls;
    result_.ambiguous = host_match_.ambiguous + device_match_.ambiguous;
    const auto host_count = [&](HostLink link) { return result_.host[static_cast<size_t>(link)]; };
    const auto count = [&](EventLink link) { return result_.events[static_cast<size_t>(link)]; };
    Stats& stats = builder_.stats();
    stats.Count(Stat::kUnlinkedHost, host_count(HostLink::kNoEvent) +
                                         host_count(HostLink::kOtherName) +
                                         host_count(HostLink::kTaken));
    stats.Count(Stat::kFallbackLink, host_count(HostLink::kAligned));
    stats.Count(Stat::kUnlinkedDeviceOp,
                count(EventLink::kOrphanNoLaunch) + count(EventLink::kOrphanNoOperator));
    stats.Count(Stat::kUnlinkedEvent, count(EventLink::kHostUnlinked));
    stats.Count(Stat::kAmbiguousLink, result_.ambiguous);
  }

  bool IsOrphan(NodeId event) const {
    const EventLink link = device_match_.links[event.index()];
    return link == EventLink::kOrphanNoLaunch || link == EventLink::kOrphanNoOperator;
  }
  bool IsDeviceNode(NodeId event) const {
    const EventLink link = device_match_.links[event.index()];
    if (IsOrphan(event)) return options_.keep_orphans;
    return link == EventLink::kByCorrelation || link == EventLink::kByExternalId;
  }

  // Host nodes by id, which is their order of entry; device nodes by time.
  void OrderNodes() {
    host_order_ = host_.NodesBySourceId();
    ForEachNode(device_, [&](NodeId event) {
      if (IsDeviceNode(event)) device_order_.push_back(event);
    });
    std::ranges::sort(device_order_, {}, [&](NodeId event) {
      return std::tuple(device_.start(event).value_or(Nanos{INT64_MAX}), event);
    });
  }

  // Ids of device nodes are above all ids in the host trace.
  void PlanIds() {
    uint64_t last = 0;
    bool repeated = false;
    for (size_t i = 0; i < host_order_.size(); ++i) {
      const uint64_t id = host_.source_id(host_order_[i]);
      repeated = repeated || (i > 0 && id == last);
      last = id;
    }
    for (const Trace::Dangling& dangling : host_.dangling()) {
      last = std::max(last, dangling.source_id);
    }
    const uint64_t room = std::numeric_limits<uint64_t>::max() - last;
    result_.renumbered = repeated || room <= device_order_.size();
    host_ids_.resize(host_.node_count());
    for (size_t i = 0; i < host_order_.size(); ++i) {
      const NodeId node = host_order_[i];
      host_ids_[node.index()] = result_.renumbered ? i : host_.source_id(node);
    }
    next_id_ = result_.renumbered ? host_order_.size() : last + 1;
    // New ids must not give dangling references a meaning.
    if (result_.renumbered) next_dangling_ = host_order_.size() + device_order_.size();
  }

  // Threads have small numbers in the host trace and system names in the device trace: the majority
  // of a thread's matched nodes maps one to the other.
  void LearnLanes() {
    std::unordered_map<uint64_t, std::unordered_map<uint32_t, uint32_t>> votes;
    for (const NodeId node : host_order_) {
      const NodeId event = host_match_.events[node.index()];
      const auto tid = host_.tid(node);
      if (event && tid) ++votes[*tid][device_.lane_id(event).value()];
      if (host_.kind(node) == NodeKind::kThread && tid) thread_roots_.emplace(*tid, node);
      if (host_.kind(node) == NodeKind::kProcess && !process_root_) process_root_ = node;
    }
    for (const auto& [tid, lanes] : votes) {
      const auto most = std::ranges::max_element(lanes, [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second < b.second : a.first > b.first;
      });
      lane_of_tid_.emplace(tid, LaneId(most->first));
    }
    for (const auto& [tid, lane] : lane_of_tid_) {
      const auto [at, added] = tid_of_lane_.emplace(lane.value(), tid);
      if (!added) at->second = std::min(at->second, tid);
    }
  }

  void TimeHostNodes() {
    std::vector<NodeTime>& times = host_times_;
    times.resize(host_.node_count());
    for (const NodeId node : host_order_) {
      const NodeId event = host_match_.events[node.index()];
      if (event) times[node.index()] = NodeTimeOf(device_, event);
    }
    ExclusiveTimes exclusive = FindExclusiveTimes(host_, times);
    exclusive_ = std::move(exclusive.times);
    ForEachNode(device_, [&](NodeId call) {
      const Nanos waited = syncs_.waited[call.index()];
      const NodeId caller = device_match_.callers[call.index()];
      if (waited.count == 0 || !caller) return;
      auto& own = exclusive_[host_match_.nodes[caller.index()].index()];
      if (own) own = std::max(*own - waited, Nanos{});
    });
    result_.overhanging = exclusive.overhanging;
    builder_.stats().Count(Stat::kClippedTime, exclusive.overhanging);
  }

  void AddHostNode(NodeId node) {
    NodeRow row = copy_host_.Row(node);
    row.source_id = host_ids_[node.index()];
    if (const NodeId parent = host_.parent(node)) {
      row.parent_node = new_of_host_[parent.index()];
    } else if (const NodeId thread = orphans_[node.index()]) {
      row.parent_node = new_of_host_[thread.index()];
      ++result_.adopted;
    }
    const NodeId event = host_match_.events[node.index()];
    if (event) {
      row.start = device_.start(event);
      row.duration = device_.duration(event);
      row.exclusive = exclusive_[node.index()];
      row.lane = copy_device_.LaneOf(device_.lane_id(event));
      row.external_id = device_.external_id(event);
    } else if (const auto tid = host_.tid(node); tid && lane_of_tid_.contains(*tid)) {
      row.lane = copy_device_.LaneOf(lane_of_tid_.at(*tid));
    }
    copy_host_.AddFacts(node, builder_.AddNode(row));
  }

  // Returns the parent of device work without a known operator.
  NodeId OrphanParent(NodeId event) const {
    const NodeId launch = device_match_.launches[event.index()];
    if (launch) {
      const auto tid = tid_of_lane_.find(device_.lane_id(launch).value());
      if (tid != tid_of_lane_.end()) {
        const auto root = thread_roots_.find(tid->second);
        if (root != thread_roots_.end()) return root->second;
      }
    }
    return process_root_;
  }

  void AddDeviceNode(NodeId event) {
    const NodeId op = device_match_.operators[event.index()];
    const NodeId parent = op ? host_match_.nodes[op.index()] : OrphanParent(event);
    NodeRow row = copy_device_.Row(event);
    row.source_id = next_id_++;
    row.exclusive = row.duration;
    if (parent) row.parent_node = new_of_host_[parent.index()];
    std::optional<Comm> comm;
    if (IsCommunication(row.kind)) comm = FindComm(event, parent, row);
    const NodeId added = builder_.AddNode(row);
    new_of_device_[event.index()] = added;
    copy_device_.AddFacts(event, added);
    NoteEarlyLaunch(event, added);
    if (comm) builder_.SetComm(added, *comm);
  }

  void NoteEarlyLaunch(NodeId event, NodeId added) {
    const NodeId launch = device_match_.launches[event.index()];
    if (!launch || !MayLaunchEarly(device_.name(launch))) return;
    builder_.AddExtra(added, {.key = builder_.Intern(kLaunchedByKey),
                              .text = builder_.Intern(JsonString(device_.name(launch)))});
  }

  // The host's facts of the communication complete those of the profiler.
  std::optional<Comm> FindComm(NodeId event, NodeId parent, NodeRow& row) {
    constexpr int kLevels = 8;
    const Comm* recorded = nullptr;
    NodeId node = parent;
    for (int i = 0; i < kLevels && node && recorded == nullptr; ++i) {
      recorded = host_.comm(node);
      if (recorded != nullptr && IsCommunication(host_.kind(node)) &&
          row.kind == NodeKind::kCollective) {
        row.kind = host_.kind(node);
      }
      node = host_.parent(node);
    }
    const Comm* own = device_.comm(event);
    if (recorded == nullptr) {
      return own == nullptr ? std::nullopt : std::optional(copy_device_.MakeComm(*own));
    }
    const Comm facts = copy_host_.MakeComm(*recorded);
    if (own == nullptr) return facts;
    return FilledFrom(copy_device_.MakeComm(*own), facts);
  }

  void AddDependencies() {
    for (const NodeId node : host_order_) {
      const auto deps = host_.deps(node);
      const auto kinds = host_.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) {
        builder_.AddDep(new_of_host_[node.index()], new_of_host_[deps[i].index()], kinds[i]);
      }
    }
    for (const Trace::Dangling& dangling : host_.dangling()) {
      if (dangling.is_parent && orphans_[dangling.node.index()]) continue;
      const uint64_t id = result_.renumbered ? next_dangling_++ : dangling.source_id;
      const NodeId node = new_of_host_[dangling.node.index()];
      if (dangling.is_parent) {
        builder_.SetParent(node, id);
      } else {
        builder_.AddDep(node, id, dangling.kind);
      }
    }
    const auto lane_of = [&](NodeId node) { return host_times_[node.index()].lane; };
    for (const OrderEdge& edge : HostOrder(host_, lane_of)) {
      builder_.AddDep(new_of_host_[edge.node.index()], new_of_host_[edge.before.index()],
                      DepKind::kData);
    }
    // Dropped work passes on its dependencies: the edges of a stream form a chain.
    std::vector<NodeId> stands_for(device_.node_count());
    for (const OrderEdge& edge : StreamOrder(device_)) {
      const NodeId before =
          IsDeviceNode(edge.before) ? edge.before : stands_for[edge.before.index()];
      if (!IsDeviceNode(edge.node)) {
        stands_for[edge.node.index()] = before;
      } else if (before) {
        builder_.AddDep(new_of_device_[edge.node.index()], new_of_device_[before.index()],
                        DepKind::kSync);
      }
    }
  }

  // Returns the first host node that begins on the call's thread after the call.
  NodeId NextNode(NodeId call) {
    if (!call || !device_.start(call)) return NodeId::None();
    if (nodes_of_lane_.empty()) {
      ForEachNode(device_, [&](NodeId event) {
        if (host_match_.nodes[event.index()] && device_.start(event)) {
          nodes_of_lane_[device_.lane_id(event)].push_back(event);
        }
      });
      for (auto& [lane, events] : nodes_of_lane_) {
        std::ranges::sort(events, {}, [&](NodeId event) {
          return std::tuple(*device_.start(event),
                            host_.source_id(host_match_.nodes[event.index()]));
        });
      }
    }
    const auto events = nodes_of_lane_.find(device_.lane_id(call));
    if (events == nodes_of_lane_.end()) return NodeId::None();
    const Nanos end = *device_.start(call) + device_.duration(call).value_or(Nanos{});
    const auto next = std::ranges::lower_bound(events->second, end, {},
                                               [&](NodeId event) { return *device_.start(event); });
    return next == events->second.end() ? NodeId::None() : host_match_.nodes[next->index()];
  }

  void AddTimedEdges() {
    for (OrderEdge edge : syncs_.edges) {
      if (!IsDeviceNode(edge.before)) continue;
      NodeId waits;
      if (!edge.in_call) {
        if (IsDeviceNode(edge.node)) waits = new_of_device_[edge.node.index()];
      } else if (const NodeId next = NextNode(edge.node)) {
        waits = new_of_host_[next.index()];
      }
      edge.node = waits;
      edge.before = new_of_device_[edge.before.index()];
      if (waits) AddTimed(edge, result_.sync_edges);
    }
    for (OrderEdge edge : ThreadEdges(host_, host_times_)) {
      edge.node = new_of_host_[edge.node.index()];
      edge.before = new_of_host_[edge.before.index()];
      AddTimed(edge, result_.thread_edges);
    }
  }

  void AddTimed(const OrderEdge& edge, uint64_t& count) {
    const size_t number = timed_edges_.size();
    if (!timed_pairs_.insert(PairOf(edge.node, edge.before)).second) return;
    timed_edges_.push_back(edge);
    if (wrong_.contains(number)) {
      ++result_.contradictions;
      return;
    }
    builder_.AddDep(edge.node, edge.before, KindOf(edge.reason));
    ++count;
  }

  const Trace& host_;
  const Trace& device_;
  const LinkOptions& options_;
  const std::unordered_set<size_t>& wrong_;
  TraceBuilder builder_;
  TraceCopy copy_host_;
  TraceCopy copy_device_;
  LinkResult result_;
  std::vector<NodeId> orphans_;  // by host node: its adopting thread
  HostMatch host_match_;
  DeviceMatch device_match_;
  std::vector<NodeId> host_order_;
  std::vector<NodeId> device_order_;
  std::vector<uint64_t> host_ids_;  // of the new trace, by host node
  uint64_t next_id_ = 0;
  uint64_t next_dangling_ = 0;
  std::unordered_map<uint64_t, LaneId> lane_of_tid_;  // lanes of the device trace
  std::unordered_map<uint32_t, uint64_t> tid_of_lane_;
  std::unordered_map<uint64_t, NodeId> thread_roots_;  // by tid
  NodeId process_root_;
  SyncEdges syncs_;
  std::vector<NodeTime> host_times_;
  std::vector<std::optional<Nanos>> exclusive_;
  std::unordered_map<LaneId, std::vector<NodeId>> nodes_of_lane_;  // events, by begin
  std::vector<OrderEdge> timed_edges_;
  std::unordered_set<uint64_t> timed_pairs_;
  std::vector<NodeId> new_of_host_;
  std::vector<NodeId> new_of_device_;
};

}  // namespace

uint64_t LinkResult::host_nodes() const {
  uint64_t sum = 0;
  for (const uint64_t count : host) sum += count;
  return sum;
}

uint64_t LinkResult::host_linkable() const {
  return host_nodes() - host[static_cast<size_t>(HostLink::kRoot)];
}

uint64_t LinkResult::host_matched() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < kHostLinkCount; ++i) {
    if (IsMatched(static_cast<HostLink>(i))) sum += host[i];
  }
  return sum;
}

uint64_t LinkResult::device_linked() const {
  return events[static_cast<size_t>(EventLink::kByCorrelation)] +
         events[static_cast<size_t>(EventLink::kByExternalId)];
}

uint64_t LinkResult::device_nodes() const {
  return device_linked() + events[static_cast<size_t>(EventLink::kOrphanNoLaunch)] +
         events[static_cast<size_t>(EventLink::kOrphanNoOperator)];
}

namespace {

Result<LinkResult> LinkNested(const Trace& host, const Trace& device, const LinkOptions& options) {
  std::unordered_set<size_t> wrong;
  Linker linker(host, device, options, wrong);
  Result<LinkResult> result = linker.Run();
  if (!result || result->trace.is_acyclic() || !host.is_acyclic()) return result;
  // Inconsistent times: removes dependencies that contradict nesting and the order on threads and
  // streams.
  std::unordered_set<uint64_t> timed;
  for (const OrderEdge& edge : linker.timed_edges()) timed.insert(PairOf(edge.node, edge.before));
  std::vector<OrderEdge> edges;
  const Trace& trace = result->trace;
  ForEachNode(trace, [&](NodeId node) {
    for (const NodeId dep : trace.deps(node)) {
      if (!timed.contains(PairOf(node, dep))) edges.push_back({node, dep});
    }
  });
  const size_t given = edges.size();
  edges.insert(edges.end(), linker.timed_edges().begin(), linker.timed_edges().end());
  const std::vector<bool> contradicting = FindContradictions(trace, edges, given);
  for (size_t i = given; i < edges.size(); ++i) {
    if (contradicting[i]) wrong.insert(i - given);
  }
  return Linker(host, device, options, wrong).Run();
}

}  // namespace

Result<LinkResult> Link(const Trace& host, const Trace& device, const LinkOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(const std::optional<RightNesting> right,
                         SetNestingRight(host, device, options.limits));
  if (!right) return LinkNested(host, device, options);
  ETUDE_ASSIGN_OR_RETURN(LinkResult result, LinkNested(right->host, device, options));
  result.moved = right->moved;
  return result;
}

}  // namespace etude
