#include "src/sim/collective/timed_collectives.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/sim/models/sim_compute_model.h"

namespace etude {

TimedCollectives::TimedCollectives(const SimInput& input, SharedCores& cores, SimTimeline& timeline,
                                   NodeListener& listener)
    : input_(input),
      cores_(cores),
      timeline_(timeline),
      listener_(listener),
      all_(static_cast<size_t>(input.total)),
      next_(input.class_count()),
      ends_(input.class_count()) {
  std::iota(all_.begin(), all_.end(), int64_t{0});
}

// Returns nullptr, and fails, if they are unknown.
const std::vector<int64_t>* TimedCollectives::MembersOf(RankClassId rank_class, SimIndex index,
                                                        const SimNode& node) {
  const int64_t group = input_.SimRankOf(rank_class).GroupOf(node);
  if (group == 0) return &all_;
  const auto found = input_.workload.groups.find(group);
  if (found != input_.workload.groups.end() &&
      std::ranges::count(found->second, input_.RankOf(rank_class)) != 0) {
    return &found->second;
  }
  listener_.Fail(rank_class, index,
                 fmt::format("found group {}, expected its ranks, with this one, in a file of "
                             "process groups",
                             group));
  return nullptr;
}

void TimedCollectives::Begin(RankClassId rank_class, SimIndex index, const SimNode& node) {
  if (input_.system.Replays(node)) {
    timeline_.PlanLocal(rank_class, RecordedTime(node),
                        {.kind = LocalKind::kNodeDone, .subject = index});
    return;
  }
  const std::vector<int64_t>* members = MembersOf(rank_class, index, node);
  if (members == nullptr) return;
  const int64_t group = input_.SimRankOf(rank_class).GroupOf(node);
  const int64_t number = next_[rank_class.index()][group]++;
  const auto [at, is_new] = meetings_.try_emplace({group, number});
  if (is_new) {
    at->second = static_cast<SimIndex>(collectives_.size());
    collectives_.push_back({.type = node.collective});
  }
  Collective& met = collectives_[at->second];
  if (met.type != node.collective) {
    return listener_.Fail(rank_class, index,
                          fmt::format("found {}, expected {} as on rank {}", Name(node.collective),
                                      Name(met.type), input_.RankOf(met.calls[0].rank_class)));
  }
  met.bytes = std::max(met.bytes, node.bytes);
  met.calls.push_back({.rank_class = rank_class, .node = index});
  if (met.calls.size() < members->size()) return;
  const SimIndex collective = at->second;
  meetings_.erase(at);
  if (input_.machine.has_recorded_times()) return EndAsRecorded(collective);
  const Result<CommunicationTime> time =
      input_.machine.times->TimeOf(met.type, *members, met.bytes);
  if (!time) return listener_.Fail(rank_class, index, time.error().message);
  met.nanos = time->nanos;
  met.begin = timeline_.now();
  cores_.Begin({.is_collective = true, .subject = collective}, time->nanos, time->cores,
               static_cast<int64_t>(members->size()));
}

// Ends the collective on each rank after the duration of its node.
void TimedCollectives::EndAsRecorded(SimIndex collective) {
  const Collective done = std::move(collectives_[collective]);
  const Call& last = done.calls.back();
  for (const Call& call : done.calls) {
    const SimNode& node = input_.ProgramOf(call.rank_class).nodes[call.node];
    const int64_t time = input_.machine.RecordedTimeOf(node);
    if (time == 0) {
      return listener_.Fail(call.rank_class, call.node, kNoRecordedTime);
    }
    ends_[call.rank_class.index()].push_back({.node = call.node,
                                              .source_class = last.rank_class.value(),
                                              .source_node = last.node,
                                              .transfer = time});
    timeline_.PlanLocal(call.rank_class, time,
                        {.kind = LocalKind::kNodeDone, .subject = call.node});
  }
}

void TimedCollectives::End(SimIndex collective) {
  const Collective done = std::move(collectives_[collective]);
  const Call& last = done.calls.back();
  for (const Call& call : done.calls) {
    ends_[call.rank_class.index()].push_back({.node = call.node,
                                              .source_class = last.rank_class.value(),
                                              .source_node = last.node,
                                              .transfer = done.nanos,
                                              .queue = timeline_.now() - done.begin - done.nanos});
  }
  for (const Call& call : done.calls) listener_.Complete(call.rank_class, call.node);
}

std::vector<std::vector<SimCollectiveEnd>> TimedCollectives::TakeEnds() {
  for (std::vector<SimCollectiveEnd>& one : ends_) {
    std::ranges::sort(one, {}, &SimCollectiveEnd::node);
  }
  return std::move(ends_);
}

}  // namespace etude
