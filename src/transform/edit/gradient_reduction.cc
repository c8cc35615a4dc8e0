#include "src/transform/edit/gradient_reduction.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/run/activity.h"
#include "src/run/step/recorded_step.h"
#include "src/run/step/tensor_shape.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/edit/added_reductions.h"
#include "src/transform/edit/copy_rate.h"
#include "src/transform/edit/time_shift.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

constexpr std::string_view kGroup = "data_parallel";

std::optional<RecordedGradient> GradientOf(const Trace& trace, NodeId node) {
  std::optional<RecordedGradient> found;
  ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
    if (found) return;
    const TensorUse& use = trace.tensor(id);
    const DType dtype = DTypeOf(trace, use);
    const auto element = ElementBytes(dtype);
    int64_t bytes = 0;
    if (!element || use.numel <= 0 || __builtin_mul_overflow(use.numel, *element, &bytes)) return;
    found = RecordedGradient{.node = node, .bytes = Bytes{bytes}, .dtype = dtype};
  });
  return found;
}

// Nodes of the host that matter, in order of time.
struct HostEvents {
  std::vector<NodeId> gradients;  // labels that accumulate
  std::vector<NodeId> others;     // working nodes outside autograd
};

HostEvents HostEventsOf(const Trace& trace) {
  HostEvents events;
  std::set<LaneId> beside;   // threads of a communication backend
  std::set<LaneId> working;  // threads that do other things, too
  ForEachNode(trace, [&](NodeId node) {
    const LaneId lane = trace.lane_id(node);
    if (IsHostThreadLabel(trace.name(node))) beside.insert(lane);
    if (!IsCommunication(trace.kind(node))) working.insert(lane);
  });
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice || !EndOf(trace, node)) return;
    const LaneId lane = trace.lane_id(node);
    if (beside.contains(lane) || !working.contains(lane)) return;
    if (trace.name(node) == kIntoBucket) return;
    if (IsGradientAccumulation(trace.name(node))) {
      events.gradients.push_back(node);
    } else if (const NodeKind kind = trace.kind(node);
               (kind == NodeKind::kOperator || kind == NodeKind::kLabel || IsCommunication(kind)) &&
               !IsInBackward(trace, node)) {
      events.others.push_back(node);
    }
  });
  const auto by_start = [&](NodeId node) { return std::pair(*trace.start(node), node.index()); };
  std::ranges::sort(events.gradients, {}, by_start);
  std::ranges::sort(events.others, {}, by_start);
  return events;
}

class Reducer {
 public:
  Reducer(const Trace& trace, int64_t ranks, const BucketSizes& sizes, const Limits& limits)
      : trace_(trace), ranks_(ranks), sizes_(sizes), added_(trace, limits) {}

  Result<GradientReduction> Run() {
    ETUDE_RETURN_IF_ERROR(Check());
    const std::vector<BackwardPass> passes = FindBackwardPasses(trace_);
    if (passes.empty()) {
      return BadInput(
          "found no gradients ('torch::autograd::AccumulateGrad' with tensors and times), expected "
          "a recorded training step");
    }
    // Two copies of each gradient, and an all-reduce.
    ETUDE_RETURN_IF_ERROR(added_.Copy(kGroup, ranks_, ranks_, 3 * trace_.node_count()));
    if (added_.on_host()) MakeRoom(passes);
    for (const BackwardPass& pass : passes) AddPass(pass);
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

 private:
  Status Check() {
    bool communicates = false;
    ForEachNode(trace_, [&](NodeId node) {
      communicates = communicates || IsCommunication(trace_.kind(node));
    });
    if (communicates) return BadInput("found communication, expected one rank without any");
    return {};
  }

  // Makes room on the host for the copies of each pass, at the speed of the trace's operators: all
  // that follows is later.
  void MakeRoom(std::span<const BackwardPass> passes) {
    rate_ = FindCopyRate(trace_);
    if (!rate_) return;
    std::vector<TimeChange> rooms;
    for (const BackwardPass& pass : passes) {
      Nanos back;
      for (const RecordedGradient& gradient : pass.gradients) {
        const Nanos time = TimeOfCopy(gradient);
        rooms.push_back({.at = EndOf(trace_, gradient.node).value_or(Nanos{}), .length = time});
        back = back + time;
      }
      rooms.push_back({.at = EndOfPass(pass), .length = back});
    }
    shift_.emplace(std::move(rooms));
    taken_.resize(shift_->changes().size());
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start) return;
      const Nanos begin = shift_->Begin(*start);
      auto duration = trace_.duration(node);
      if (duration) duration = std::max(shift_->End(*start + *duration) - begin, Nanos{});
      builder_.SetTimes(node, begin, duration, trace_.exclusive(node));
    });
  }

  Nanos TimeOfCopy(const RecordedGradient& gradient) const {
    return rate_->TimeOf(2 * gradient.bytes.count);  // read and written
  }
  // Returns the moment at which the host waits for the reduction.
  Nanos EndOfPass(const BackwardPass& pass) const {
    if (pass.after) return *trace_.start(pass.after);
    return EndOf(trace_, pass.gradients.back().node).value_or(Nanos{});
  }
  // Takes the next room at a moment of the recording, and returns its begin in the edited trace.
  Nanos TakeRoom(Nanos moment) {
    const auto rooms = shift_->changes();
    const auto first = std::ranges::lower_bound(rooms, moment, {}, &TimeChange::at);
    auto room = static_cast<size_t>(first - rooms.begin());
    while (taken_[room]) ++room;
    taken_[room] = true;
    return shift_->BeginOf(room);
  }

  // Adds a copy of a gradient.
  NodeId AddCopy(std::string_view name, const RecordedGradient& gradient, Nanos start,
                 LaneId lane) {
    NodeRow row;
    row.source_id = added_.NextId();
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = builder_.Intern(name);
    row.lane = lane;
    row.start = start;
    row.duration = TimeOfCopy(gradient);
    row.exclusive = row.duration;
    ++result_.copies;
    return builder_.AddNode(row);
  }

  void AddPass(const BackwardPass& pass) {
    std::vector<GradientBucket>& buckets =
        result_.passes.emplace_back(BucketsOf(pass.gradients, sizes_));
    std::ranges::sort(buckets, {}, &GradientBucket::last);
    std::vector<NodeId> copies;  // of gradients into buckets
    std::vector<Nanos> copied;   // their ends
    for (const RecordedGradient& gradient : pass.gradients) {
      if (!rate_) break;
      const Nanos begin = TakeRoom(EndOf(trace_, gradient.node).value_or(Nanos{}));
      copies.push_back(AddCopy(kIntoBucket, gradient, begin, trace_.lane_id(gradient.node)));
      copied.push_back(begin + TimeOfCopy(gradient));
    }
    std::vector<NodeId> reduced;  // by bucket
    for (const GradientBucket& bucket : buckets) {
      const NodeId gradient = pass.gradients[bucket.last].node;
      const Nanos arrived = rate_ ? copied[bucket.last] : EndOf(trace_, gradient).value_or(Nanos{});
      const NodeId node = added_.Add(arrived, bucket.dtype, bucket.bytes);
      builder_.AddDep(node, rate_ ? copies[bucket.last] : gradient, DepKind::kSync);
      // On a device the gradient arrives when the work launched so far has ended.
      if (const NodeId work = added_.LaunchedBefore(arrived)) {
        builder_.AddDep(node, work, DepKind::kSync);
      }
      if (!reduced.empty()) builder_.AddDep(node, reduced.back(), DepKind::kSync);
      reduced.push_back(node);
    }
    if (rate_) return CopyFromBuckets(pass, buckets, reduced);
    if (added_.on_host()) {
      if (pass.after) builder_.AddDep(pass.after, reduced.back(), DepKind::kSync);
      return;
    }
    const Nanos end = EndOf(trace_, pass.gradients.back().node).value_or(Nanos{});
    if (const NodeId next = added_.LaunchedAfter(end)) {
      builder_.AddDep(next, reduced.back(), DepKind::kSync);
    }
  }

  // Copies the gradients back after the pass, in the order of buckets, each after its reduction.
  void CopyFromBuckets(const BackwardPass& pass, std::span<const GradientBucket> buckets,
                       std::span<const NodeId> reduced) {
    Nanos begin = TakeRoom(EndOfPass(pass));
    const NodeId host = pass.after ? pass.after : pass.gradients.back().node;
    std::map<DType, size_t> next;  // index of the first gradient of a type that is not copied yet
    for (size_t i = 0; i < buckets.size(); ++i) {
      size_t& at = next[buckets[i].dtype];
      for (; at <= buckets[i].last; ++at) {
        const RecordedGradient& gradient = pass.gradients[at];
        if (gradient.dtype != buckets[i].dtype) continue;
        const NodeId copy = AddCopy(kFromBucket, gradient, begin, trace_.lane_id(host));
        builder_.AddDep(copy, reduced[i], DepKind::kSync);
        begin = begin + TimeOfCopy(gradient);
      }
    }
  }

  const Trace& trace_;
  int64_t ranks_;
  const BucketSizes& sizes_;
  AddedReductions added_;
  TraceBuilder& builder_ = added_.builder();
  GradientReduction result_;
  std::optional<CopyRate> rate_;    // of copies on the host; nullopt: none are added
  std::optional<TimeShift> shift_;  // with room for the copies
  std::vector<bool> taken_;         // by room
};

}  // namespace

std::vector<BackwardPass> FindBackwardPasses(const Trace& trace) {
  const HostEvents events = HostEventsOf(trace);
  std::vector<BackwardPass> passes;
  auto other = events.others.begin();
  std::optional<Nanos> end;  // of the last gradient
  for (const NodeId node : events.gradients) {
    const std::optional<RecordedGradient> gradient = GradientOf(trace, node);
    if (!gradient) continue;
    // A pass ends where work outside of autograd begins.
    while (end && other != events.others.end() && *trace.start(*other) < *end) ++other;
    const bool is_new = passes.empty() ||
                        (other != events.others.end() && *trace.start(*other) < *trace.start(node));
    if (is_new) {
      if (!passes.empty()) passes.back().after = *other;
      passes.emplace_back();
    }
    passes.back().gradients.push_back(*gradient);
    end = EndOf(trace, node);
  }
  if (passes.empty()) return passes;
  while (other != events.others.end() && *trace.start(*other) < *end) ++other;
  if (other != events.others.end()) passes.back().after = *other;
  return passes;
}

std::vector<GradientBucket> BucketsOf(std::span<const RecordedGradient> gradients,
                                      const BucketSizes& sizes) {
  std::vector<GradientBucket> buckets;
  struct Open {
    GradientBucket bucket;
    bool is_first = true;  // no bucket of its type has ended
  };
  std::map<DType, Open> open;
  for (size_t i = 0; i < gradients.size(); ++i) {
    auto& [bucket, is_first] = open[gradients[i].dtype];
    bucket.dtype = gradients[i].dtype;
    bucket.bytes = bucket.bytes + gradients[i].bytes;
    ++bucket.gradients;
    bucket.last = i;
    if (bucket.bytes < (is_first ? sizes.first : sizes.other)) continue;
    buckets.push_back(std::exchange(bucket, {}));
    is_first = false;
  }
  for (auto& [dtype, rest] : open) {
    if (rest.bucket.gradients != 0) buckets.push_back(rest.bucket);
  }
  return buckets;
}

Result<GradientReduction> AddGradientReduction(const Trace& trace, int64_t ranks,
                                               const BucketSizes& sizes, const Limits& limits) {
  return Reducer(trace, ranks, sizes, limits).Run();
}

}  // namespace etude
