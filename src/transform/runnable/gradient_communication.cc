#include "src/transform/runnable/gradient_communication.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/base/statistics/median.h"
#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"
#include "src/run/activity.h"
#include "src/run/calls/callers.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_class.h"
#include "src/transform/runnable/rank_edit.h"

namespace etude {
namespace {

constexpr uint32_t kNoNode = RunnableNode::kNone;

bool Reduces(const RunnableNode& node) {
  return node.kind == NodeKind::kCollective &&
         (node.type == CollectiveType::kAllReduce || node.type == CollectiveType::kReduceScatter ||
          node.type == CollectiveType::kReduceScatterBlock || node.type == CollectiveType::kReduce);
}

// Returns the node in which autograd's engine adds a gradient and calls the hooks of its parameter.
NodeId CallOf(const Trace& trace, NodeId gradient) {
  for (NodeId node = gradient; node; node = trace.parent(node)) {
    if (trace.name(node).starts_with(kAutogradCall)) return node;
  }
  return gradient;
}

// Places of a trace's nodes in a rank made of it.
class RankPlaces {
 public:
  RankPlaces(const Trace& trace, const RunnableRank& rank)
      : trace_(trace), rank_(rank), launches_(trace) {
    for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
      const NodeId node = rank.nodes[i].origin;
      if (!node || IsCommunication(rank.nodes[i].kind)) continue;
      const LaneId lane = rank.on_device ? LaneId::None() : trace.lane_id(node);
      const auto time = rank.on_device ? launches_.time(node) : trace.start(node);
      if (time) begun_[lane].emplace_back(*time, i);
    }
    for (auto& [lane, nodes] : begun_) std::ranges::sort(nodes);
  }

  // Returns the moment at which the host began a communication; nullopt if unknown.
  std::optional<Nanos> BegunAt(uint32_t number) const {
    const NodeId node = rank_.nodes[number].origin;
    if (!node) return std::nullopt;
    if (const NodeId issuer = IssuerOfLabel(trace_, node)) return trace_.start(issuer);
    if (trace_.place(node) == Place::kDevice) {
      if (const auto time = launches_.time(node)) return time;
    }
    return trace_.start(node);
  }

  // Returns the last node that the rank runs for a gradient: on the host in the engine's call, on
  // devices the work launched until its end. kNoNode without any.
  uint32_t LastOf(NodeId gradient) const {
    const NodeId call = CallOf(trace_, gradient);
    const auto begin = trace_.start(call);
    const auto end = EndOf(trace_, call);
    if (!begin || !end) return kNoNode;
    const auto found = begun_.find(rank_.on_device ? LaneId::None() : trace_.lane_id(call));
    if (found == begun_.end()) return kNoNode;
    const auto& nodes = found->second;
    auto next = std::ranges::lower_bound(nodes, *end, {}, &Begun::first);
    if (rank_.on_device) return next == nodes.begin() ? kNoNode : std::prev(next)->second;
    uint32_t last = kNoNode;
    while (next != nodes.begin() && std::prev(next)->first >= *begin) {
      --next;
      const bool is_inside = EndOf(trace_, rank_.nodes[next->second].origin) <= end;
      if (is_inside && (last == kNoNode || next->second > last)) last = next->second;
    }
    return last;
  }

 private:
  const Trace& trace_;
  const RunnableRank& rank_;
  Launches launches_;
  using Begun = std::pair<Nanos, uint32_t>;     // time, node of the rank
  std::map<LaneId, std::vector<Begun>> begun_;  // by host thread; on devices one, by launch
};

// Returns whether a collective that reduces may reduce gradients: numbers with fractions, unlike
// the map of used parameters of DistributedDataParallel.
bool MayReduceGradients(const Trace& trace, const RunnableNode& node) {
  const Comm* comm = node.origin ? trace.comm(node.origin) : nullptr;
  return comm == nullptr || !IsInteger(comm->dtype);
}

// Returns the collectives that may reduce gradients, in the order in which the host began them.
std::vector<std::pair<Nanos, uint32_t>> BegunReductions(const Trace& trace,
                                                        const RunnableRank& rank,
                                                        const RankPlaces& places) {
  std::vector<std::pair<Nanos, uint32_t>> begun;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    if (!Reduces(rank.nodes[i]) || !MayReduceGradients(trace, rank.nodes[i])) continue;
    if (const auto time = places.BegunAt(i)) begun.emplace_back(*time, i);
  }
  std::ranges::sort(begun);
  return begun;
}

// Returns the memory of a node's input tensors, by their known storages.
std::vector<uint64_t> MemoryOf(const Trace& trace, NodeId node) {
  std::vector<uint64_t> memory;
  ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
    const uint64_t storage = trace.tensor(id).storage;
    if (storage != 0) memory.push_back(storage);
  });
  return memory;
}

// Returns the call with the tensors of a collective.
NodeId CallOfCollective(const Trace& trace, const RunnableNode& node) {
  const NodeId issuer = IssuerOfLabel(trace, node.origin);
  NodeId call = issuer ? issuer : node.origin;
  while (trace.parent(call) && MemoryOf(trace, call).empty()) call = trace.parent(call);
  return call;
}

// Returns the indices of a pass's gradients by the memory of their tensors.
std::map<uint64_t, size_t> ArrivalsByMemory(const Trace& trace, const BackwardPass& pass) {
  std::map<uint64_t, size_t> arrivals;
  for (size_t i = 0; i < pass.gradients.size(); ++i) {
    for (const uint64_t memory : MemoryOf(trace, pass.gradients[i].node)) arrivals[memory] = i;
  }
  return arrivals;
}

// Returns the last gradient whose memory a call reads; nullopt if it reads other memory, too, or
// none.
std::optional<size_t> LastArrival(const Trace& trace, NodeId call,
                                  const std::map<uint64_t, size_t>& arrivals) {
  std::optional<size_t> last;
  for (const uint64_t memory : MemoryOf(trace, call)) {
    const auto found = arrivals.find(memory);
    if (found == arrivals.end()) return std::nullopt;
    last = std::max(last.value_or(0), found->second);
  }
  return last;
}

// Operators that continue a backward pass with a gradient, by the memory of their inputs.
class GradientReaders {
 public:
  explicit GradientReaders(const Trace& trace) {
    ForEachNode(trace, [&](NodeId node) {
      const auto start = trace.start(node);
      if (!start || trace.kind(node) != NodeKind::kOperator) return;
      const std::string_view name = trace.name(node);
      if (!name.ends_with("_backward") && !MeansOperator("matrix", name, false)) return;
      for (const uint64_t memory : MemoryOf(trace, node)) begun_[memory].push_back(*start);
    });
    for (auto& [memory, begun] : begun_) std::ranges::sort(begun);
  }

  // Returns whether an operator that begins within [from, to) reads this memory.
  bool IsRead(uint64_t memory, Nanos from, Nanos to) const {
    const auto found = begun_.find(memory);
    if (found == begun_.end()) return false;
    const auto next = std::ranges::lower_bound(found->second, from);
    return next != found->second.end() && *next < to;
  }

 private:
  std::map<uint64_t, std::vector<Nanos>> begun_;  // by memory, in order
};

bool IsWithin(const Trace& trace, NodeId node, NodeId above) {
  while (node && node != above) node = trace.parent(node);
  return node == above;
}

// Reductions of one backward pass.
struct PassReductions {
  GradientCommunication gradients;
  // Nodes of the rank that reduce gradients of activations, with which the pass goes on, as of
  // tensor parallelism.
  std::vector<uint32_t> activations;
};

// Returns the reductions of all backward passes of a trace.
std::vector<PassReductions> ReductionsOf(const Trace& trace, const RunnableRank& rank,
                                         const RankPlaces& places) {
  const auto begun = BegunReductions(trace, rank, places);
  const GradientReaders readers(trace);
  std::vector<BackwardPass> passes = FindBackwardPasses(trace);
  std::vector<PassReductions> found;
  for (size_t i = 0; i < passes.size(); ++i) {
    BackwardPass& pass = passes[i];
    PassReductions& one = found.emplace_back();
    const auto begin = trace.start(CallOf(trace, pass.gradients.front().node));
    const auto end = pass.after ? trace.start(pass.after) : std::nullopt;
    std::optional<Nanos> next;
    if (i + 1 < passes.size()) {
      next = trace.start(CallOf(trace, passes[i + 1].gradients.front().node));
    }
    const auto arrivals = ArrivalsByMemory(trace, pass);
    for (const auto& [time, number] : begun) {
      if (!begin || time < *begin || (next && time >= *next)) continue;
      const NodeId call = CallOfCollective(trace, rank.nodes[number]);
      if (!end || time < *end || (time == *end && !IsWithin(trace, call, pass.after))) {
        const bool is_of_activations =
            end && std::ranges::any_of(MemoryOf(trace, call), [&](uint64_t memory) {
              return readers.IsRead(memory, time, *end);
            });
        (is_of_activations ? one.activations : one.gradients.collectives).push_back(number);
      } else if (const auto last = LastArrival(trace, call, arrivals)) {
        one.gradients.late.push_back({.collective = number, .last = *last});
      }
    }
    std::ranges::stable_sort(one.gradients.late, {}, &LateReduction::last);
    one.gradients.pass = std::move(pass);
  }
  return found;
}

// FindGradientCommunication with the places of the rank.
Result<std::vector<GradientCommunication>> FindIn(const Trace& trace, const RunnableRank& rank,
                                                  const RankPlaces& places) {
  std::vector<PassReductions> passes = ReductionsOf(trace, rank, places);
  if (passes.empty()) {
    return BadInput(
        "found no gradients ('torch::autograd::AccumulateGrad' with tensors and times), expected a "
        "recorded training step");
  }
  std::vector<GradientCommunication> found;
  for (PassReductions& pass : passes) {
    if (pass.gradients.collectives.empty() && pass.gradients.late.empty()) continue;
    found.push_back(std::move(pass.gradients));
  }
  if (found.empty()) {
    return BadInput(
        "found no collectives that reduce gradients during or after a backward pass, expected a "
        "recorded data-parallel step; a recording of one rank requires --dp, too");
  }
  return found;
}

class Rebucketer {
 public:
  Rebucketer(const Trace& trace, const BucketSizes& sizes, RunnableRank& rank)
      : trace_(trace), sizes_(sizes), rank_(rank), places_(trace, rank), edit_(rank) {
    for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
      if (const NodeId node = rank.nodes[i].origin) numbers_.emplace(node, i);
    }
  }

  Result<Rebucketing> Run() {
    ETUDE_ASSIGN_OR_RETURN(const auto passes, FindIn(trace_, rank_, places_));
    for (const GradientCommunication& one : passes) {
      if (one.collectives.empty()) {
        return BadInput(
            "found gradients that are reduced one by one after the backward pass, expected "
            "buckets, as of DistributedDataParallel; nearest possible: --overlap on");
      }
      ETUDE_RETURN_IF_ERROR(CheckAllReduces(one));
      ETUDE_RETURN_IF_ERROR(FindRecordedBuckets(one));
      if (IsAsRecorded(one)) continue;
      RemoveAllReduces(one);
      FindWaiters(one);
      FindCopies(one.pass);
      result_.recorded += one.collectives.size();
      AddPass(one);
    }
    if (result_.passes.empty()) return std::move(result_);
    for (const uint32_t node : removed_) edit_.Remove(node);
    ETUDE_RETURN_IF_ERROR(edit_.Finish());
    return std::move(result_);
  }

 private:
  // Nodes that copy a gradient back from its bucket.
  struct CopyWork {
    std::vector<uint32_t> view;  // of the gradient in the bucket
    std::vector<uint32_t> copy;
  };

  Status CheckAllReduces(const GradientCommunication& one) const {
    const RunnableNode& first = rank_.nodes[one.collectives.front()];
    for (const uint32_t number : one.collectives) {
      const RunnableNode& node = rank_.nodes[number];
      if (node.type == CollectiveType::kAllReduce && node.group == first.group) continue;
      return BadInput(fmt::format(
          "found '{}' beside '{}' in a backward pass, expected only all-reduces of one group, as "
          "of DistributedDataParallel",
          rank_.names[node.name], rank_.names[first.name]));
    }
    return {};
  }

  // Removes the all-reduces and the calls that began them, and notes their threads or streams.
  void RemoveAllReduces(const GradientCommunication& one) {
    lanes_.clear();
    for (const uint32_t number : one.collectives) {
      const RunnableNode& node = rank_.nodes[number];
      removed_.insert(number);
      if (std::ranges::find(lanes_, node.lane) == lanes_.end()) lanes_.push_back(node.lane);
      const NodeId issuer = node.origin ? IssuerOfLabel(trace_, node.origin) : NodeId::None();
      const auto call = issuer ? numbers_.find(issuer) : numbers_.end();
      if (call == numbers_.end()) continue;
      removed_.insert(call->second);
      calls_.push_back(call->second);
    }
  }

  // Assigns gradients to the recorded all-reduces: in the order of their arrival, by type.
  Status FindRecordedBuckets(const GradientCommunication& one) {
    recorded_.assign(one.pass.gradients.size(), 0);
    std::map<DType, size_t> next;
    for (size_t bucket = 0; bucket < one.collectives.size(); ++bucket) {
      const RunnableNode& node = rank_.nodes[one.collectives[bucket]];
      const Comm* comm = node.origin ? trace_.comm(node.origin) : nullptr;
      DType dtype = comm == nullptr ? DType::kUnknown : comm->dtype;
      if (dtype == DType::kUnknown) dtype = one.pass.gradients.front().dtype;
      const int64_t wanted = node.bytes_in.value_or(node.bytes_out.value_or(0));
      int64_t bytes = 0;
      for (size_t& i = next[dtype]; i < recorded_.size() && bytes < wanted; ++i) {
        const RecordedGradient& gradient = one.pass.gradients[i];
        if (gradient.dtype != dtype) continue;
        bytes += gradient.bytes.count;
        recorded_[i] = bucket;
      }
      if (bytes != wanted || wanted == 0) return NotOfGradients(node, wanted);
    }
    for (const auto& [dtype, count] : next) {
      for (size_t i = count; i < recorded_.size(); ++i) {
        if (one.pass.gradients[i].dtype == dtype) {
          return BadInput("found gradients that no all-reduce of the backward pass contains");
        }
      }
    }
    return {};
  }

  tl::unexpected<Error> NotOfGradients(const RunnableNode& node, int64_t bytes) const {
    return BadInput(fmt::format(
        "found '{}' of {}, expected the bytes of consecutive gradients in the order of their "
        "arrival, as DistributedDataParallel reduces them after its first step",
        rank_.names[node.name], FormatCount(static_cast<uint64_t>(bytes), "byte")));
  }

  // Returns whether the new buckets of a pass are the recorded ones.
  bool IsAsRecorded(const GradientCommunication& one) const {
    std::vector<GradientBucket> buckets = BucketsOf(one.pass.gradients, sizes_);
    std::ranges::sort(buckets, {}, &GradientBucket::last);
    std::vector<size_t> ends(one.collectives.size());  // last gradient by recorded bucket
    for (size_t i = 0; i < recorded_.size(); ++i) ends[recorded_[i]] = i;
    std::ranges::sort(ends);
    return std::ranges::equal(buckets, ends, {}, &GradientBucket::last);
  }

  // Finds what waits for each recorded all-reduce, and ends the waits.
  void FindWaiters(const GradientCommunication& one) {
    waiters_.assign(one.collectives.size(), kNoNode);
    for (uint32_t i = 0; i < rank_.nodes.size(); ++i) {
      if (removed_.contains(i)) continue;
      for (size_t bucket = 0; bucket < one.collectives.size(); ++bucket) {
        if (std::ranges::count(edit_.deps(i), one.collectives[bucket]) == 0) continue;
        if (IsOnLane(rank_.nodes[i])) continue;
        edit_.RemoveDep(i, one.collectives[bucket]);
        if (waiters_[bucket] == kNoNode) waiters_[bucket] = i;
      }
    }
    // A bucket without a waiter of its own was over when one of the next was waited for.
    for (size_t bucket = waiters_.size(); bucket-- > 1;) {
      uint32_t& before = waiters_[bucket - 1];
      before = std::min(before, waiters_[bucket]);
    }
  }

  bool IsOnLane(const RunnableNode& node) const {
    return IsCommunication(node.kind) && std::ranges::count(lanes_, node.lane) != 0;
  }

  // Finds the copies of each gradient after the pass; none if they are not one by one.
  void FindCopies(const BackwardPass& pass) {
    copies_.assign(recorded_.size(), {});
    if (rank_.on_device || !pass.after || waiters_.front() == kNoNode) return ForgetCopies();
    const LaneId lane = trace_.lane_id(pass.after);
    std::vector<size_t> gradients;  // in the order of the recorded copies
    for (size_t bucket = 0; bucket < waiters_.size(); ++bucket) {
      for (size_t i = 0; i < recorded_.size(); ++i) {
        if (recorded_[i] == bucket) gradients.push_back(i);
      }
    }
    std::vector<std::vector<uint32_t>> views;  // of the bucket, in order of time
    std::vector<uint32_t> labels;              // before the next operator
    std::optional<Nanos> end;                  // of the outermost node
    size_t copied = 0;
    for (uint32_t i = waiters_.front(); i < rank_.nodes.size(); ++i) {
      const RunnableNode& node = rank_.nodes[i];
      if (!node.origin || trace_.lane_id(node.origin) != lane) continue;
      labels.push_back(i);
      if (!node.start) continue;
      const bool is_copy = trace_.name(node.origin) == kFromBucket;
      const bool is_outermost = !end || *node.start >= *end;
      if (is_outermost) {
        if (copied == gradients.size() && !is_copy) break;
        end = EndOf(trace_, node.origin);
      }
      if (is_copy) {
        if (copied == gradients.size()) return ForgetCopies();
        // The first copy of a bucket: one view per gradient precedes it.
        const size_t bucket = recorded_[gradients[copied]];
        const bool is_first = copied == 0 || recorded_[gradients[copied - 1]] != bucket;
        if (!is_first && !views.empty()) return ForgetCopies();
        if (is_first) {
          const auto count = std::ranges::count(recorded_, bucket);
          if (views.size() % static_cast<size_t>(count) != 0) return ForgetCopies();
          const size_t each = views.size() / static_cast<size_t>(count);
          for (size_t k = 0; k < views.size(); ++k) {
            auto& view = copies_[gradients[copied + k / each]].view;
            view.insert(view.end(), views[k].begin(), views[k].end());
          }
          views.clear();
        }
        ++copied;
      } else if (is_outermost) {
        views.emplace_back();
      }
      std::vector<uint32_t>& into =
          views.empty() ? copies_[gradients[copied == 0 ? 0 : copied - 1]].copy : views.back();
      into.insert(into.end(), labels.begin(), labels.end());
      labels.clear();
    }
    if (copied != gradients.size() || !views.empty()) ForgetCopies();
  }
  void ForgetCopies() { copies_.clear(); }

  void AddPass(const GradientCommunication& one) {
    std::vector<GradientBucket>& buckets =
        result_.passes.emplace_back(BucketsOf(one.pass.gradients, sizes_));
    std::ranges::sort(buckets, {}, &GradientBucket::last);
    std::map<uint32_t, uint32_t> last_on;  // by lane: its last node
    const uint32_t begin = one.collectives.front();
    const uint32_t end = one.collectives.back();
    for (uint32_t i = 0; i < begin; ++i) {
      if (IsOnLane(rank_.nodes[i]) && !removed_.contains(i)) last_on[rank_.nodes[i].lane] = i;
    }
    std::vector<uint32_t> reduced;
    for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      const NodeId gradient = one.pass.gradients[buckets[bucket].last].node;
      uint32_t before = places_.LastOf(gradient);
      if (!calls_.empty() && before != kNoNode) before = AddCall(before);
      RunnableNode node =
          rank_.nodes[one.collectives[std::min(bucket, one.collectives.size() - 1)]];
      node.origin = gradient;
      node.start = EndOf(trace_, CallOf(trace_, gradient));
      node.duration.reset();
      node.lane = lanes_[bucket % lanes_.size()];
      node.bytes_in = buckets[bucket].bytes.count;
      if (node.bytes_out) node.bytes_out = node.bytes_in;
      const uint32_t added = edit_.AddAfter(before == kNoNode ? begin : before, node);
      if (before != kNoNode) edit_.AddDep(added, before);
      const auto previous = last_on.find(node.lane);
      if (previous != last_on.end()) edit_.AddDep(added, previous->second);
      last_on[node.lane] = added;
      reduced.push_back(added);
    }
    for (uint32_t i = end + 1; i < rank_.nodes.size(); ++i) {
      if (!IsOnLane(rank_.nodes[i]) || removed_.contains(i)) continue;
      const auto previous = last_on.find(rank_.nodes[i].lane);
      if (previous == last_on.end()) continue;
      edit_.AddDep(i, previous->second);
      last_on.erase(previous);
    }
    AddWaits(one.pass, buckets, reduced);
  }

  // Adds the call that begins an all-reduce, after a node of its thread, and returns it.
  uint32_t AddCall(uint32_t after) {
    std::vector<double> times;
    for (const uint32_t call : calls_) {
      if (const auto time = rank_.nodes[call].duration) {
        times.push_back(static_cast<double>(time->count));
      }
    }
    while (removed_.contains(after) && !rank_.DepsOf(after).empty()) {
      after = rank_.DepsOf(after).back();
    }
    RunnableNode node = rank_.nodes[calls_.front()];
    node.start.reset();
    if (!times.empty()) node.duration = Nanos{std::llround(MedianInPlace(times))};
    const uint32_t added = edit_.AddAfter(after, node);
    InsertAfter(after, added);
    return added;
  }

  // Puts an added node between a node and those on its thread that waited for it.
  void InsertAfter(uint32_t before, uint32_t added) {
    for (uint32_t i = before + 1; i < rank_.nodes.size(); ++i) {
      if (rank_.nodes[i].lane != rank_.nodes[before].lane) continue;
      const auto deps = edit_.deps(i);
      if (std::ranges::count(deps, before) == 0) continue;
      edit_.RemoveDep(i, before);
      edit_.AddDep(i, added);
    }
    edit_.AddDep(added, before);
  }

  void AddWaits(const BackwardPass& pass, std::span<const GradientBucket> buckets,
                std::span<const uint32_t> reduced) {
    std::map<DType, size_t> next;  // first gradient of a type in no bucket yet
    std::vector<std::vector<size_t>> gradients(buckets.size());
    for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      for (size_t& i = next[buckets[bucket].dtype]; i <= buckets[bucket].last; ++i) {
        if (pass.gradients[i].dtype == buckets[bucket].dtype) gradients[bucket].push_back(i);
      }
    }
    if (copies_.empty()) {
      for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
        const uint32_t waiter = waiters_[recorded_[gradients[bucket].front()]];
        if (waiter != kNoNode) edit_.AddDep(waiter, reduced[bucket]);
      }
      return;
    }
    std::vector<uint32_t> nodes;  // all copies, in the new order
    std::vector<std::pair<uint32_t, uint32_t>> waits;
    for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      const size_t first = nodes.size();
      for (const size_t i : gradients[bucket]) {
        nodes.insert(nodes.end(), copies_[i].view.begin(), copies_[i].view.end());
      }
      for (const size_t i : gradients[bucket]) {
        nodes.insert(nodes.end(), copies_[i].copy.begin(), copies_[i].copy.end());
      }
      waits.emplace_back(nodes[first], reduced[bucket]);
    }
    Chain(nodes);
    for (const auto& [node, reduction] : waits) edit_.AddDep(node, reduction);
  }

  // Lets nodes of one thread, recorded in ascending order, run in another order.
  void Chain(const std::vector<uint32_t>& nodes) {
    const std::set<uint32_t> all(nodes.begin(), nodes.end());
    const uint32_t last = *all.rbegin();
    std::vector<uint32_t> before;  // what the first of them waited for
    before.assign(edit_.deps(*all.begin()).begin(), edit_.deps(*all.begin()).end());
    for (uint32_t i = *all.begin(); i < rank_.nodes.size(); ++i) {
      const std::vector<uint32_t> deps(edit_.deps(i).begin(), edit_.deps(i).end());
      for (const uint32_t dep : deps) {
        if (!all.contains(dep)) continue;
        edit_.RemoveDep(i, dep);
        if (!all.contains(i)) edit_.AddDep(i, dep == last ? nodes.back() : dep);
      }
    }
    for (const uint32_t dep : before) {
      edit_.RemoveDep(*all.begin(), dep);
      edit_.AddDep(nodes.front(), dep);
    }
    for (size_t i = 1; i < nodes.size(); ++i) edit_.AddDep(nodes[i], nodes[i - 1]);
  }

  const Trace& trace_;
  const BucketSizes& sizes_;
  RunnableRank& rank_;
  RankPlaces places_;
  RankEdit edit_;
  Rebucketing result_;
  std::map<NodeId, uint32_t> numbers_;  // of the rank's nodes
  std::set<uint32_t> removed_;          // recorded all-reduces and the calls that began them
  std::vector<uint32_t> calls_;         // these calls
  std::vector<uint32_t> lanes_;         // of the all-reduces
  std::vector<size_t> recorded_;        // by gradient of the pass: its recorded bucket
  std::vector<uint32_t> waiters_;       // by recorded bucket: the first node that waits for it
  std::vector<CopyWork> copies_;        // by gradient; empty: not known
};

}  // namespace

Result<std::vector<GradientCommunication>> FindGradientCommunication(const Trace& trace,
                                                                     const RunnableRank& rank) {
  return FindIn(trace, rank, RankPlaces(trace, rank));
}

std::optional<uint32_t> FindActivationReduction(const Trace& trace, const RunnableRank& rank) {
  for (const PassReductions& pass : ReductionsOf(trace, rank, RankPlaces(trace, rank))) {
    if (!pass.activations.empty()) return pass.activations.front();
  }
  return std::nullopt;
}

Result<Rebucketing> Rebucket(const Trace& trace, const BucketSizes& sizes, RunnableRank& rank) {
  return Rebucketer(trace, sizes, rank).Run();
}

Result<uint64_t> WaitForBackward(const Trace& trace, RunnableRank& rank) {
  const RankPlaces places(trace, rank);
  ETUDE_ASSIGN_OR_RETURN(const auto passes, FindIn(trace, rank, places));
  RankEdit edit(rank);
  uint64_t count = 0;
  for (const GradientCommunication& one : passes) {
    const uint32_t last = places.LastOf(one.pass.gradients.back().node);
    if (last == kNoNode) continue;
    for (const uint32_t collective : one.collectives) edit.AddDep(collective, last);
    count += one.collectives.size();
  }
  if (!edit.Finish()) {
    return BadInput(
        "found a backward pass that waits for its own communication, such as of sharded "
        "parameters, "
        "expected one that continues beside it; nearest possible: --compress");
  }
  return count;
}

Result<uint64_t> RunBesideBackward(const Trace& trace, RunnableRank& rank) {
  const RankPlaces places(trace, rank);
  ETUDE_ASSIGN_OR_RETURN(const auto passes, FindIn(trace, rank, places));
  RankEdit edit(rank);
  uint64_t count = 0;
  for (const GradientCommunication& one : passes) {
    // One after another on all threads, which may share the collectives otherwise on each rank.
    std::optional<uint32_t> before;
    for (const auto& [number, last] : one.late) {
      const uint32_t arrived = places.LastOf(one.pass.gradients[last].node);
      if (arrived == kNoNode) continue;
      edit.SetDeps(number, {arrived});
      if (before) edit.AddDep(number, *before);
      before = number;
      ++count;
    }
  }
  ETUDE_RETURN_IF_ERROR(edit.Finish());
  return count;
}

Result<GradientCompression> GradientCompression::Parse(std::string_view text) {
  constexpr double kMostCompression = 10'000;
  const size_t comma = std::min(text.find(','), text.size());
  const auto factor = ParseDecimal(text.substr(0, comma));
  GradientCompression parsed{.factor = factor.value_or(0)};
  bool is_right = parsed.factor >= 1 && parsed.factor <= kMostCompression;
  if (is_right && comma < text.size()) {
    const std::string_view rate = text.substr(comma + 1);
    const auto bytes =
        rate.ends_with("/s") ? ParseBytes(rate.substr(0, rate.size() - 2)) : std::nullopt;
    is_right = bytes && bytes->count > 0;
    if (is_right) parsed.bytes_per_second = static_cast<double>(bytes->count);
  }
  if (is_right) return parsed;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("--compress: found '{}', expected a factor from 1 to {}, and optionally the "
                  "speed of compression, such as 4 or 4,20GB/s",
                  text, FormatCount(static_cast<uint64_t>(kMostCompression))));
}

Result<uint64_t> CompressGradients(const Trace& trace, const GradientCompression& compression,
                                   RunnableRank& rank) {
  ETUDE_ASSIGN_OR_RETURN(const auto passes, FindGradientCommunication(trace, rank));
  RankEdit edit(rank);
  uint64_t count = 0;
  for (const GradientCommunication& one : passes) {
    std::vector<uint32_t> collectives = one.collectives;
    for (const LateReduction& late : one.late) collectives.push_back(late.collective);
    for (const uint32_t number : collectives) {
      const RunnableNode recorded = edit.node(number);
      RunnableNode smaller = recorded;
      smaller.duration.reset();
      for (std::optional<int64_t>* bytes : {&smaller.bytes_in, &smaller.bytes_out}) {
        if (!*bytes) continue;
        *bytes = std::llround(std::ceil(static_cast<double>(**bytes) / compression.factor));
      }
      ++count;
      if (!compression.bytes_per_second) {
        edit.node(number) = smaller;
        continue;
      }
      // The recorded node becomes the decompression, for which others wait.
      const auto time = [&](std::optional<int64_t> bytes) {
        const auto seconds = static_cast<double>(bytes.value_or(0)) / *compression.bytes_per_second;
        return Nanos{std::llround(seconds * 1e9)};
      };
      RunnableNode work{.kind = NodeKind::kCompute,
                        .device = recorded.device,
                        .stream = recorded.stream,
                        .lane = recorded.lane};
      work.name = edit.NameOf("decompress");
      work.duration = time(recorded.bytes_out ? recorded.bytes_out : recorded.bytes_in);
      edit.node(number) = work;
      const uint32_t begun = edit.AddBefore(number, smaller);
      work.name = edit.NameOf("compress");
      work.duration = time(recorded.bytes_in ? recorded.bytes_in : recorded.bytes_out);
      edit.AddBefore(begun, work);
    }
  }
  ETUDE_RETURN_IF_ERROR(edit.Finish());
  return count;
}

}  // namespace etude
