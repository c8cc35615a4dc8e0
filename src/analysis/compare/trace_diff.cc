#include "src/analysis/compare/trace_diff.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/analysis/view/modules.h"
#include "src/base/align.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/run/activity.h"
#include "src/run/exclusive_times.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/phase.h"

namespace etude {
namespace {

using Change = TraceDiff::Change;
using TokenPairs = std::vector<std::pair<uint32_t, uint32_t>>;

// A host thread, as far as the trace distinguishes threads.
using ThreadKey = std::pair<LaneId, uint64_t>;
ThreadKey ThreadOf(const Trace& trace, NodeId node) {
  return {trace.lane_id(node), trace.tid(node).value_or(0)};
}

// Threads that take any piece of work handed over by others; the assignment is random.
class PoolThreads {
 public:
  explicit PoolThreads(const Trace& trace) : trace_(trace) {
    ForEachNode(trace, [&](NodeId node) {
      has_gloo_ = has_gloo_ || IsHostThreadLabel(trace_.name(node));
      if (trace_.place(node) == Place::kHost && IsTopmost(node)) Note(node);
    });
    for (const auto& [thread, runs] : threads_) {
      has_others_ = has_others_ || runs.own;
      if (runs.is_backward()) ++backward_threads_;
    }
  }

  // Returns the number of autograd's own threads: a single one runs in order.
  size_t backward_threads() const { return backward_threads_; }

  bool Has(NodeId node, bool also_backward) const {
    if (IsHostThreadLabel(trace_.name(node))) return true;
    const auto found = threads_.find(ThreadOf(trace_, node));
    if (found == threads_.end() || found->second.own || !has_others_) return false;
    return found->second.backward ? also_backward && found->second.is_backward() : has_gloo_;
  }

 private:
  // Topmost nodes of a thread, except Gloo collectives.
  struct Runs {
    bool own = false;       // not handed over by another thread: steps, communications, labels
    bool backward = false;  // functions of autograd
    bool bare = false;      // plain operators

    bool is_backward() const { return backward && !bare && !own; }
  };

  bool IsTopmost(NodeId node) const {
    const NodeKind kind = trace_.kind(node);
    if (kind == NodeKind::kProcess || kind == NodeKind::kThread) return false;
    const NodeId above = trace_.parent(node);
    return !above || trace_.kind(above) == NodeKind::kThread ||
           ThreadOf(trace_, above) != ThreadOf(trace_, node);
  }

  void Note(NodeId node) {
    Runs& runs = threads_[ThreadOf(trace_, node)];
    if (IsMemoryEvent(trace_, node) || IsHostThreadLabel(trace_.name(node))) return;
    if (PhaseOfLabel(trace_, node) == Phase::kBackward) {
      runs.backward = true;
    } else if (trace_.kind(node) == NodeKind::kOperator && !IsCommOperator(trace_.name(node)) &&
               trace_.name(node) != kRecordParamComms) {
      runs.bare = true;
    } else {
      runs.own = true;
    }
  }

  const Trace& trace_;
  std::map<ThreadKey, Runs> threads_;
  bool has_gloo_ = false;
  bool has_others_ = false;  // threads with work of their own
  size_t backward_threads_ = 0;
};

// Work of one side: host threads and devices each in their order, and work of thread pools, whose
// order is random.
struct Side {
  Side(const Trace& from, const PoolThreads& pools, bool backward_is_pooled)
      : trace(from), launches(from), modules(from, launches), self(SelfTimes(from)) {
    ForEachNode(trace, [&](NodeId node) {
      if (DeviceActivity(trace, node) != Activity::kNone) {
        device.push_back(node);
      } else if (HostActivity(trace, node) != Activity::kNone &&
                 trace.kind(node) != NodeKind::kLabel) {
        (pools.Has(node, backward_is_pooled) ? pool : host).push_back(node);
      }
    });
    SortHost();
    std::ranges::stable_sort(device, {}, [&](NodeId node) {
      const Nanos start = trace.start(node).value_or(Nanos{});
      return std::tuple(launches.time(node).value_or(start), start, trace.source_id(node));
    });
  }

  // Sorts by thread, threads by their first node, because their interleaving is random. Ids are in
  // order of entry in execution traces, but not in profiles.
  void SortHost() {
    const bool by_time = trace.traits().is_profile;
    std::ranges::stable_sort(host, {}, [&](NodeId node) {
      return std::tuple(by_time ? trace.start(node).value_or(Nanos{}) : Nanos{},
                        by_time ? -trace.duration(node).value_or(Nanos{}).count : 0,
                        trace.source_id(node));
    });
    std::map<ThreadKey, size_t> threads;
    std::vector<std::pair<size_t, NodeId>> keyed;
    keyed.reserve(host.size());
    for (const NodeId node : host) {
      const ThreadKey thread = ThreadOf(trace, node);
      keyed.emplace_back(threads.try_emplace(thread, threads.size()).first->second, node);
    }
    std::ranges::stable_sort(keyed, {}, &std::pair<size_t, NodeId>::first);
    for (size_t i = 0; i < host.size(); ++i) host[i] = keyed[i].second;
  }

  const Trace& trace;
  Launches launches;
  Modules modules;
  std::vector<std::optional<Nanos>> self;
  std::vector<NodeId> host;
  std::vector<NodeId> pool;
  std::vector<NodeId> device;
};

// Numbers that are equal if and only if names and kinds are.
class Tokens {
 public:
  std::vector<uint32_t> Of(const Trace& trace, const std::vector<NodeId>& nodes) {
    std::vector<uint32_t> tokens;
    tokens.reserve(nodes.size());
    for (const NodeId node : nodes) {
      const auto next = static_cast<uint32_t>(numbers_.size());
      tokens.push_back(numbers_.try_emplace(trace.name(node), next).first->second);
    }
    return tokens;
  }

 private:
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

// Shapes and types of a node's input tensors, as one list of numbers and texts.
struct Shapes {
  std::vector<int64_t> sizes;  // each tensor's after its number of dimensions
  std::vector<std::string_view> types;

  friend auto operator<=>(const Shapes&, const Shapes&) = default;
};

Shapes ShapesOf(const Trace& trace, NodeId node) {
  Shapes shapes;
  const auto add = [&](TensorId id) {
    const TensorUse& use = trace.tensor(id);
    const auto sizes = trace.ints(use.shape);
    shapes.sizes.push_back(static_cast<int64_t>(sizes.size()));
    shapes.sizes.insert(shapes.sizes.end(), sizes.begin(), sizes.end());
    shapes.types.push_back(trace.text(use.type));
  };
  ForEachTensor(trace, trace.inputs(node), add);
  return shapes;
}

// Work of a pool thread.
struct PoolWork {
  std::string_view name;
  Shapes shapes;
  NodeId node;

  friend auto operator<=>(const PoolWork&, const PoolWork&) = default;
};

std::vector<PoolWork> PoolWorkOf(const Side& side) {
  std::vector<PoolWork> work;
  work.reserve(side.pool.size());
  for (const NodeId node : side.pool) {
    work.push_back({side.trace.name(node), ShapesOf(side.trace, node), node});
  }
  std::ranges::sort(work);
  return work;
}

// Sums of both sides by some text.
class SumTable {
 public:
  void Count(std::string_view name, Place place, bool is_b, std::optional<Nanos> self) {
    TraceDiff::Sum& sum = Row(name, place);
    ++(is_b ? sum.count_b : sum.count_a);
    auto& total = is_b ? sum.self_b : sum.self_a;
    if (self) total = total.value_or(Nanos{}) + *self;
  }
  void Count(std::string_view name, Place place, Change change) {
    TraceDiff::Sum& sum = Row(name, place);
    switch (change) {
      case Change::kSame: break;
      case Change::kShapes: ++sum.reshaped; break;
      case Change::kRemoved: ++sum.removed; break;
      case Change::kAdded: ++sum.added; break;
    }
  }

  std::vector<TraceDiff::Sum> Sorted() const {
    std::vector<TraceDiff::Sum> sorted;
    for (const auto& [key, sum] : rows_) sorted.push_back(sum);
    std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const TraceDiff::Sum& sum) {
      const Nanos change = sum.self_b.value_or(Nanos{}) - sum.self_a.value_or(Nanos{});
      return std::tuple(std::max(change.count, -change.count),
                        sum.removed + sum.added + sum.reshaped, std::max(sum.count_a, sum.count_b));
    });
    return sorted;
  }

 private:
  TraceDiff::Sum& Row(std::string_view name, Place place) {
    TraceDiff::Sum& sum = rows_[{name, place}];
    sum.name = name;
    sum.place = place;
    return sum;
  }

  std::map<std::pair<std::string_view, Place>, TraceDiff::Sum> rows_;
};

class Differ {
 public:
  Differ(Side a, Side b) : a_(std::move(a)), b_(std::move(b)) {}

  TraceDiff Run() {
    if (HaveSameNodes()) {
      for (Side* side : {&a_, &b_}) {
        std::ranges::stable_sort(side->device, {},
                                 [&](NodeId node) { return side->trace.source_id(node); });
      }
    }
    CountSide(a_, false);
    CountSide(b_, true);
    Pair(Place::kHost);
    PairPools();
    Pair(Place::kDevice);
    diff_.ops = ops_.Sorted();
    diff_.modules = modules_.Sorted();
    if (const auto span = SpanOf(a_.trace)) diff_.span_a = span->length();
    if (const auto span = SpanOf(b_.trace)) diff_.span_b = span->length();
    return std::move(diff_);
  }

 private:
  // Returns true for one graph with two sets of times, as from a simulation.
  bool HaveSameNodes() const {
    if (a_.trace.node_count() != b_.trace.node_count()) return false;
    for (size_t i = 0; i < a_.trace.node_count(); ++i) {
      const NodeId node = NodeId::FromIndex(i);
      const NodeId other = b_.trace.Find(a_.trace.source_id(node));
      if (!other || a_.trace.name(node) != b_.trace.name(other)) return false;
    }
    return true;
  }

  void CountSide(const Side& side, bool is_b) {
    for (const Place place : {Place::kHost, Place::kDevice}) {
      for (const NodeId node : place == Place::kHost ? side.host : side.device) {
        CountNode(side, place, node, is_b);
      }
    }
    for (const NodeId node : side.pool) CountNode(side, Place::kHost, node, is_b);
  }
  void CountNode(const Side& side, Place place, NodeId node, bool is_b) {
    ops_.Count(side.trace.name(node), place, is_b, side.self[node.index()]);
    modules_.Count(side.modules.name(node), place, is_b, side.self[node.index()]);
  }

  void Pair(Place place) {
    const std::vector<NodeId>& nodes_a = place == Place::kHost ? a_.host : a_.device;
    const std::vector<NodeId>& nodes_b = place == Place::kHost ? b_.host : b_.device;
    Tokens tokens;
    const std::vector<uint32_t> tokens_a = tokens.Of(a_.trace, nodes_a);
    const std::vector<uint32_t> tokens_b = tokens.Of(b_.trace, nodes_b);
    const auto pairs = PairTokens(tokens_a, tokens_b);
    size_t i = 0;
    size_t j = 0;
    const auto skip_to = [&](size_t to_i, size_t to_j) {
      for (; i < to_i; ++i) Add(place, {Change::kRemoved, nodes_a[i], NodeId::None()});
      for (; j < to_j; ++j) Add(place, {Change::kAdded, NodeId::None(), nodes_b[j]});
    };
    for (const auto& [at_a, at_b] : pairs) {
      skip_to(at_a, at_b);
      const NodeId a = nodes_a[i++];
      const NodeId b = nodes_b[j++];
      const bool same = IsUnknown(a, b) || ShapesOf(a_.trace, a) == ShapesOf(b_.trace, b);
      Add(place, {same ? Change::kSame : Change::kShapes, a, b});
    }
    skip_to(nodes_a.size(), nodes_b.size());
  }

  // Returns true if inputs are unknown and cannot be compared.
  bool IsUnknown(NodeId a, NodeId b) const {
    return !a_.trace.input_list(a) || !b_.trace.input_list(b);
  }

  // Pairs work of pools by name and shapes, and the rest by name.
  void PairPools() {
    std::vector<PoolWork> a = PoolWorkOf(a_);
    std::vector<PoolWork> b = PoolWorkOf(b_);
    PairPools(a, b, [](const PoolWork& work) { return std::tie(work.name, work.shapes); });
    PairPools(a, b, [](const PoolWork& work) { return work.name; });
    for (const PoolWork& work : a) Add(Place::kHost, {Change::kRemoved, work.node, NodeId::None()});
    for (const PoolWork& work : b) Add(Place::kHost, {Change::kAdded, NodeId::None(), work.node});
  }

  // Pairs entries with equal keys in `a` and `b`, which are sorted by key, and removes them.
  template <typename Key>
  void PairPools(std::vector<PoolWork>& a, std::vector<PoolWork>& b, Key key) {
    std::vector<PoolWork> left_a;
    std::vector<PoolWork> left_b;
    size_t i = 0;
    size_t j = 0;
    while (i < a.size() && j < b.size()) {
      if (key(a[i]) < key(b[j])) {
        left_a.push_back(std::move(a[i++]));
      } else if (key(b[j]) < key(a[i])) {
        left_b.push_back(std::move(b[j++]));
      } else {
        const PoolWork& in_a = a[i++];
        const PoolWork& in_b = b[j++];
        const bool same = IsUnknown(in_a.node, in_b.node) || in_a.shapes == in_b.shapes;
        Add(Place::kHost, {same ? Change::kSame : Change::kShapes, in_a.node, in_b.node});
      }
    }
    std::move(a.begin() + static_cast<ptrdiff_t>(i), a.end(), std::back_inserter(left_a));
    std::move(b.begin() + static_cast<ptrdiff_t>(j), b.end(), std::back_inserter(left_b));
    a = std::move(left_a);
    b = std::move(left_b);
  }

  // Pairs the common prefix and suffix directly, and aligns the rest.
  TokenPairs PairTokens(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    const size_t shorter = std::min(a.size(), b.size());
    uint32_t head = 0;
    while (head < shorter && a[head] == b[head]) ++head;
    size_t tail = 0;
    while (head + tail < shorter && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
    TokenPairs pairs;
    for (uint32_t k = 0; k < head; ++k) pairs.emplace_back(k, k);
    const std::span<const uint32_t> inner_a(a.data() + head, a.size() - head - tail);
    const std::span<const uint32_t> inner_b(b.data() + head, b.size() - head - tail);
    const TokenPairs inner = PairInner(inner_a, inner_b);
    // A few differences are a change between equal parts.
    const bool most = inner_a.size() + inner_b.size() > head + tail;
    if (inner.empty() && !inner_a.empty() && !inner_b.empty() && most) diff_.unpaired = true;
    for (const auto& [at_a, at_b] : inner) pairs.emplace_back(head + at_a, head + at_b);
    for (size_t k = tail; k-- > 0;) {
      pairs.emplace_back(static_cast<uint32_t>(a.size() - 1 - k),
                         static_cast<uint32_t>(b.size() - 1 - k));
    }
    return pairs;
  }

  static TokenPairs PairInner(std::span<const uint32_t> a, std::span<const uint32_t> b) {
    if (a.size() > b.size()) {
      TokenPairs pairs = PairInner(b, a);
      for (auto& [at_b, at_a] : pairs) std::swap(at_b, at_a);
      return pairs;
    }
    // A step compared with several is searched in them; otherwise both must be about the same.
    const bool alike = b.size() <= a.size() + a.size() / 2;
    if (alike) {
      if (auto whole = AlignWhole(a, b)) return *std::move(whole);
    }
    TokenPairs found = Align(a, b).pairs;
    if (found.empty() && !alike) found = AlignWhole(a, b).value_or(TokenPairs());
    return found;
  }

  void Add(Place place, const TraceDiff::Entry& entry) {
    const bool in_a = static_cast<bool>(entry.a);
    const Side& side = in_a ? a_ : b_;
    const NodeId node = in_a ? entry.a : entry.b;
    ops_.Count(side.trace.name(node), place, entry.change);
    modules_.Count(side.modules.name(node), place, entry.change);
    switch (entry.change) {
      case Change::kSame: ++diff_.same; return;
      case Change::kShapes: ++diff_.reshaped; break;
      case Change::kRemoved: ++diff_.removed; break;
      case Change::kAdded: ++diff_.added; break;
    }
    diff_.entries.push_back(entry);
  }

  Side a_;
  Side b_;
  TraceDiff diff_;
  SumTable ops_;
  SumTable modules_;
};

}  // namespace

std::string_view Name(TraceDiff::Change change) {
  switch (change) {
    case Change::kSame: return "same";
    case Change::kShapes: return "shapes";
    case Change::kRemoved: return "removed";
    case Change::kAdded: return "added";
  }
  return "same";
}

TraceDiff DiffTraces(const Trace& a, const Trace& b) {
  const PoolThreads pools_a(a);
  const PoolThreads pools_b(b);
  const bool backward_is_pooled = pools_a.backward_threads() > 1 || pools_b.backward_threads() > 1;
  return Differ(Side(a, pools_a, backward_is_pooled), Side(b, pools_b, backward_is_pooled)).Run();
}

}  // namespace etude
