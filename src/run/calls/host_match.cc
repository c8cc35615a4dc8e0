#include "src/run/calls/host_match.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/base/align.h"
#include "src/run/waits/program_order.h"

namespace etude {
namespace {

constexpr std::array<HostLinkInfo, kHostLinkCount> kHostLinkInfos = {{
    {"roots", "process, thread and metadata nodes, which have no event"},
    {"by_rf_id", "linked by record function id"},
    {"by_external_id", "linked by External id"},
    {"by_order", "linked by names and order on their thread, because ids were missing"},
    {"no_event", "the device trace has no event for them"},
    {"other_name", "the event with their id has another name"},
    {"id_taken", "another node has the same id"},
}};

using EventById = std::unordered_map<uint64_t, NodeId>;

// Matches nodes with the events in `by_id` for their record function ids.
void MatchById(const Trace& host, const Trace& device, const EventById& by_id, HostLink link,
               HostMatch& match) {
  ForEachNode(host, [&](NodeId node) {
    const auto rf_id = host.rf_id(node);
    if (IsRoot(host.kind(node)) || !rf_id) return;
    const auto found = by_id.find(*rf_id);
    HostLink& outcome = match.links[node.index()];
    if (found == by_id.end()) return;
    if (device.name(found->second) != host.name(node)) {
      outcome = HostLink::kOtherName;
    } else if (match.nodes[found->second.index()]) {
      outcome = HostLink::kTaken;
    } else {
      outcome = link;
      match.events[node.index()] = found->second;
      match.nodes[found->second.index()] = node;
    }
  });
}

// Indexes events by id; the first of several with one id counts. Id 0 is ignored: the profiler
// writes it if no observer assigned ids.
EventById IndexEvents(const Trace& device,
                      const std::function<std::optional<uint64_t>(NodeId)>& id_of,
                      uint64_t& repeated) {
  EventById by_id;
  by_id.reserve(device.node_count());
  ForEachNode(device, [&](NodeId event) {
    if (!IsHostEvent(device, event)) return;
    const auto id = id_of(event);
    if (id == 0) return;
    if (id && !by_id.emplace(*id, event).second) ++repeated;
  });
  return by_id;
}

// Returns true if record function ids are usable: each names one event, with the node's name, for
// nine in ten nodes with a matching id.
bool AreIds(const HostMatch& match, uint64_t events) {
  uint64_t matched = 0;
  uint64_t wrong = match.ambiguous;
  for (const HostLink link : match.links) {
    matched += IsMatched(link) ? 1 : 0;
    wrong += link == HostLink::kOtherName || link == HostLink::kTaken ? 1 : 0;
  }
  return wrong * 10 <= matched + wrong && match.ambiguous * 10 <= events + match.ambiguous;
}

uint64_t CountMatched(const HostMatch& match) {
  return static_cast<uint64_t>(std::ranges::count_if(match.links, IsMatched));
}

// Returns true if External ids can be used as record function ids: they must name the right events
// for nine nodes in ten, because repeated names agree by chance.
bool Agree(const Trace& host, const HostMatch& match) {
  uint64_t matched = 0;
  uint64_t possible = 0;
  ForEachNode(host, [&](NodeId node) {
    possible += IsRoot(host.kind(node)) ? 0 : 1;
    matched += IsMatched(match.links[node.index()]) ? 1 : 0;
  });
  return possible != 0 && matched * 10 >= possible * 9;
}

// Aligns threads of both traces as sequences of names.
class Aligner {
 public:
  Aligner(const Trace& host, const Trace& device, HostMatch& match)
      : host_(host), device_(device), match_(match), orphans_(host.node_count()) {
    for (const Trace::Dangling& dangling : host.dangling()) {
      if (dangling.is_parent) orphans_[dangling.node.index()] = true;
    }
  }

  void Run() {
    CollectHostThreads();
    CollectDeviceThreads();
    // Large threads choose first. The others must have run at about the same time, so that all
    // belong to one step if the device trace has several.
    std::ranges::stable_sort(host_threads_, std::greater(), &Thread::size);
    for (const Thread& thread : host_threads_) AlignThread(thread);
  }

 private:
  struct Thread {
    std::vector<NodeId> nodes;  // in order of begin
    std::vector<uint32_t> names;
    bool taken = false;
    size_t size() const { return nodes.size(); }
  };
  struct Candidate {
    std::vector<std::pair<NodeId, NodeId>> pairs;  // host node and event
    bool ambiguous = false;
  };

  // Names are those of the device trace's table; other names cannot match.
  void CollectHostThreads() {
    std::unordered_map<uint32_t, uint32_t> thread_of;  // root -> number
    const auto add = [&](NodeId root, NodeId node) {
      const auto [at, added] =
          thread_of.emplace(root.value(), static_cast<uint32_t>(host_threads_.size()));
      if (added) host_threads_.emplace_back();
      Thread& thread = host_threads_[at->second];
      const StringId name = device_.strings().Find(host_.name(node));
      if (!name || IsRoot(host_.kind(node))) return;
      thread.nodes.push_back(node);
      thread.names.push_back(name.value());
    };
    // The edges of each thread's order form a chain that begins at its root.
    std::vector<NodeId> root_of(host_.node_count());
    for (const OrderEdge& edge : HostOrder(host_)) {
      NodeId root = root_of[edge.before.index()];
      if (!root) {
        root = edge.before;
        add(root, edge.before);
      }
      root_of[edge.node.index()] = root;
      add(root, edge.node);
    }
  }

  void CollectDeviceThreads() {
    std::vector<NodeId> events;
    std::vector<bool> in_host(device_.strings().size());
    for (const Thread& thread : host_threads_) {
      for (const uint32_t name : thread.names) in_host[name] = true;
    }
    ForEachNode(device_, [&](NodeId event) {
      const bool candidate = IsHostEvent(device_, event) && device_.start(event) &&
                             in_host[device_.name_id(event).index()];
      if (candidate) events.push_back(event);
    });
    const auto key = [&](NodeId event) {
      const int64_t duration = device_.duration(event).value_or(Nanos{0}).count;
      return std::tuple(device_.lane_id(event), *device_.start(event), -duration, event);
    };
    std::ranges::sort(events, {}, key);
    LaneId lane;
    for (const NodeId event : events) {
      if (device_threads_.empty() || device_.lane_id(event) != lane) device_threads_.emplace_back();
      lane = device_.lane_id(event);
      device_threads_.back().nodes.push_back(event);
      device_threads_.back().names.push_back(device_.name_id(event).value());
    }
  }

  // Returns the size of the multiset intersection of two threads' names.
  size_t Shared(const Thread& a, const Thread& b) {
    counts_.resize(device_.strings().size());
    for (const uint32_t name : b.names) ++counts_[name];
    size_t shared = 0;
    for (const uint32_t name : a.names) {
      if (counts_[name] == 0) continue;
      --counts_[name];
      ++shared;
    }
    for (const uint32_t name : a.names) counts_[name] = 0;
    for (const uint32_t name : b.names) counts_[name] = 0;
    return shared;
  }

  // Aligns `thread` with the device thread that has most in common with it, out of a few
  // candidates.
  void AlignThread(const Thread& thread) {
    constexpr size_t kTried = 4;
    std::vector<std::pair<size_t, Thread*>> candidates;
    for (Thread& candidate : device_threads_) {
      const size_t shared = candidate.taken ? 0 : Shared(thread, candidate);
      if (shared != 0) candidates.emplace_back(shared, &candidate);
    }
    std::ranges::stable_sort(candidates, std::greater(), &std::pair<size_t, Thread*>::first);
    if (candidates.size() > kTried) candidates.resize(kTried);
    Candidate best;
    Thread* best_thread = nullptr;
    for (const auto& [shared, other] : candidates) {
      if (shared <= best.pairs.size()) break;
      Candidate candidate = Try(thread, *other);
      if (candidate.pairs.size() <= best.pairs.size()) continue;
      best = std::move(candidate);
      best_thread = other;
    }
    if (best_thread == nullptr) return;
    best_thread->taken = true;
    ambiguous_ = ambiguous_ || best.ambiguous;
    if (ambiguous_) match_.ambiguous += best.pairs.size();
    const bool first = begin_ > end_;
    for (const auto& [node, event] : best.pairs) {
      match_.links[node.index()] = HostLink::kAligned;
      match_.events[node.index()] = event;
      match_.nodes[event.index()] = node;
      if (!first) continue;
      begin_ = std::min(begin_, *device_.start(event));
      end_ = std::max(end_, *device_.start(event));
    }
  }

  // Returns the part of a device thread that may belong to the same step as the threads aligned
  // before, if it has several steps.
  std::pair<size_t, size_t> NearPart(const Thread& thread, const Thread& other) const {
    if (begin_ > end_ || other.size() < 2 * thread.size()) return {0, other.size()};
    const Nanos length = end_ - begin_;
    const auto start_of = [&](NodeId event) { return *device_.start(event); };
    const auto from = std::ranges::lower_bound(other.nodes, begin_ - length, {}, start_of);
    const auto to = std::ranges::upper_bound(other.nodes, end_ + length, {}, start_of);
    return {static_cast<size_t>(from - other.nodes.begin()),
            static_cast<size_t>(to - other.nodes.begin())};
  }

  // Returns the nearest node above `node` that is in `map`. Limited in depth for hostile traces.
  static NodeId NearestIn(const Trace& trace, NodeId node,
                          const std::unordered_map<uint32_t, NodeId>& map) {
    constexpr int kLevels = 4096;
    NodeId above = trace.parent(node);
    for (int level = 0; level < kLevels && above; ++level) {
      if (map.contains(above.value())) return above;
      above = trace.parent(above);
    }
    return NodeId::None();
  }

  // Returns true if the nodes above are known up to a root: PyTorch's observer loses callers.
  bool HasItsCallers(NodeId node) const {
    constexpr int kLevels = 4096;
    for (int level = 0; level < kLevels && host_.parent(node); ++level) node = host_.parent(node);
    return !orphans_[node.index()];
  }

  // Returns the aligned pairs whose nearest aligned ancestors, as far as known, are also a pair.
  Candidate Try(const Thread& thread, const Thread& other) {
    const auto [from, to] = NearPart(thread, other);
    const Alignment alignment =
        Align(thread.names, std::span(other.names).subspan(from, to - from));
    Candidate candidate;
    candidate.ambiguous = alignment.ambiguous;
    std::unordered_map<uint32_t, NodeId> event_of;
    std::unordered_map<uint32_t, NodeId> node_of;
    for (const auto& [i, j] : alignment.pairs) {
      const NodeId node = thread.nodes[i];
      const NodeId event = other.nodes[from + j];
      const NodeId node_above = NearestIn(host_, node, event_of);
      const NodeId event_above = NearestIn(device_, event, node_of);
      const bool nests_alike = node_above ? event_of[node_above.value()] == event_above
                                          : event_above.is_none() || !HasItsCallers(node);
      if (!nests_alike) continue;
      event_of.emplace(node.value(), event);
      node_of.emplace(event.value(), node);
      candidate.pairs.emplace_back(node, event);
    }
    return candidate;
  }

  const Trace& host_;
  const Trace& device_;
  HostMatch& match_;
  std::vector<bool> orphans_;  // by host node: its caller is missing from the trace
  std::vector<Thread> host_threads_;
  std::vector<Thread> device_threads_;
  std::vector<uint32_t> counts_;
  // Time of the first aligned thread; begin after end: none so far.
  Nanos begin_{INT64_MAX};
  Nanos end_{INT64_MIN};
  bool ambiguous_ = false;  // another step fits as well
};

// Id 0 is ignored.
bool HasRecordFunctionIds(const Trace& host) {
  bool any = false;
  ForEachNode(host, [&](NodeId node) { any = any || host.rf_id(node).value_or(0) > 0; });
  return any;
}

// Matches without record function ids. `match` has no matches yet.
HostMatch MatchWithoutIds(const Trace& host, const Trace& device, HostMatch match) {
  const auto external_id = [&](NodeId event) {
    const auto id = device.external_id(event);
    return id && *id >= 0 ? std::optional(static_cast<uint64_t>(*id)) : std::nullopt;
  };
  HostMatch by_external = match;
  MatchById(host, device, IndexEvents(device, external_id, by_external.ambiguous),
            HostLink::kExternalId, by_external);
  if (Agree(host, by_external)) return by_external;
  Aligner(host, device, match).Run();
  return match;
}

}  // namespace

const HostLinkInfo& Info(HostLink link) { return kHostLinkInfos[static_cast<size_t>(link)]; }

bool IsHostEvent(const Trace& device, NodeId event) {
  if (device.place(event) != Place::kHost) return false;
  const NodeKind kind = device.kind(event);
  return kind != NodeKind::kRuntime && kind != NodeKind::kUnknown;
}

HostMatch MatchHost(const Trace& host, const Trace& device) {
  HostMatch match;
  match.links.assign(host.node_count(), HostLink::kNoEvent);
  match.events.resize(host.node_count());
  match.nodes.resize(device.node_count());
  ForEachNode(host, [&](NodeId node) {
    // Descriptions of process groups are written when observation begins, before or during the
    // profile.
    if (IsRoot(host.kind(node)) || host.kind(node) == NodeKind::kMetadata) {
      match.links[node.index()] = HostLink::kRoot;
    }
  });
  HostMatch by_id = match;
  const EventById by_rf_id = IndexEvents(
      device, [&](NodeId event) { return device.rf_id(event); }, by_id.ambiguous);
  if (!by_rf_id.empty() && HasRecordFunctionIds(host)) {
    MatchById(host, device, by_rf_id, HostLink::kRfId, by_id);
    if (AreIds(by_id, by_rf_id.size())) return by_id;
  }
  HostMatch other = MatchWithoutIds(host, device, match);
  return CountMatched(by_id) >= CountMatched(other) ? by_id : other;
}

}  // namespace etude
