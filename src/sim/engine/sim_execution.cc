#include "src/sim/engine/sim_execution.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace etude {

SimExecution::SimExecution(const SimInput& input, const SimComputeModel& compute,
                           SimMemoryModel& memory, SimTimeline& timeline, SimMessages& messages,
                           SimCollectives& collectives, TieWatch& ties, NodeListener& listener)
    : input_(input),
      compute_(compute),
      memory_(memory),
      timeline_(timeline),
      messages_(messages),
      collectives_(collectives),
      ties_(ties),
      listener_(listener),
      states_(input.class_count()) {
  for (SimIndex i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    state.self = &input.SimRankOf(RankClassId(i));
    state.program = state.self->program.get();
    state.waits = state.program->waits;
    if (input.machine.runs_groups_at_once()) {
      state.group_slots = GroupSlotsOf(*state.self, input.workload.groups, input.total);
    }
    state.left = state.program->nodes.size();
    nodes_ += state.left;
    state.result.begins.assign(state.left, -1);
    state.result.ends.assign(state.left, -1);
  }
}

SimExecution::Kind SimExecution::KindOf(const SimNode& node) {
  if (node.kind == NodeKind::kMemLoad || node.kind == NodeKind::kMemStore) return kMemory;
  if (node.kind == NodeKind::kCompute) return node.on_host ? kHost : kDevice;
  return kComm;
}

void SimExecution::MakeReady(State& state, SimIndex index) {
  state.ready[SlotOf(state.program->nodes[index], state.group_slots)].push(index);
}

void SimExecution::Begin() {
  for (State& state : states_) {
    for (SimIndex node = 0; node < state.waits.size(); ++node) {
      if (state.waits[node] == 0) MakeReady(state, node);
    }
  }
  for (SimIndex i = 0; i < states_.size(); ++i) {
    if (const int64_t begin = BeginOf(RankClassId(i)); begin > 0) {
      timeline_.PlanLocal(RankClassId(i), begin, {.kind = LocalKind::kWake});
      continue;
    }
    ties_.Begin(RankClassId(i), timeline_.now(), {.planned = -1});
    IssueReady(RankClassId(i));
  }
}

int64_t SimExecution::BeginOf(RankClassId rank_class) const {
  const std::vector<int64_t>& begins = input_.workload.begins;
  return begins.empty() ? 0 : begins[static_cast<size_t>(input_.RankOf(rank_class))];
}

// Issues the ready nodes in order of their numbers, as far as slots are free.
void SimExecution::IssueReady(RankClassId rank_class) {
  State& state = states_[rank_class.index()];
  if (state.issuing) return;
  state.issuing = true;
  while (true) {
    SimIndex best = kNoIndex;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (state.ready[slot].empty() || (slot != kNoSlot && state.taken[slot])) continue;
      best = std::min(best, state.ready[slot].top());
    }
    if (best == kNoIndex) break;
    Issue(rank_class, best);
  }
  state.issuing = false;
  if (state.freed.empty()) return;
  for (const SimIndex node : state.freed) MakeReady(state, node);
  state.freed.clear();
  // ASTRA-sim ends here if nothing else is pending.
  if (state.in_flight == 0) timeline_.PlanLocal(rank_class, 0, {.kind = LocalKind::kWake});
}

void SimExecution::Issue(RankClassId rank_class, SimIndex index) {
  State& state = states_[rank_class.index()];
  const SimNode& node = state.program->nodes[index];
  const size_t slot = SlotOf(node, state.group_slots);
  state.ready[slot].pop();
  state.taken[slot] = true;
  state.result.begins[index] = timeline_.now();
  ++state.in_flight;
  if (input_.system.replay_only) {
    const int64_t time = RecordedTime(node);
    if (node.kind != NodeKind::kCompute) return Wait(rank_class, index, time);
    const int64_t rank = input_.RankOf(rank_class);
    return Wait(rank_class, index,
                NoisyTime(input_.machine, rank, index, StragglerTime(input_.machine, rank, time)));
  }
  Start(rank_class, index, node);
}

void SimExecution::Start(RankClassId rank_class, SimIndex index, const SimNode& node) {
  std::optional<int64_t> time;
  switch (node.kind) {
    case NodeKind::kSend: return Send(rank_class, index, node);
    case NodeKind::kRecv: return Receive(rank_class, index, node);
    case NodeKind::kCollective:
      if (timed_ != nullptr) return timed_->Begin(rank_class, index, node);
      return collectives_.Begin(rank_class, index, node);
    case NodeKind::kMetadata:
    case NodeKind::kUnknown: return Skip(rank_class, index);
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore:
      time = memory_.Time(input_.RankOf(rank_class), node.bytes, timeline_.now());
      if (!time)
        return listener_.Fail(rank_class, index,
                              "found an access to remote memory, expected a memory file whose "
                              "memory-type is not NO_MEMORY_EXPANSION");
      return Wait(rank_class, index, *time);
    default: break;
  }
  time = compute_.Time(input_.RankOf(rank_class), node);
  if (!time) return Skip(rank_class, index);
  time = NoisyTime(input_.machine, input_.RankOf(rank_class), index, *time);
  const bool uses_core = node.on_host || states_[rank_class.index()].program->host_computes;
  if (cores_ != nullptr && uses_core) {
    return cores_->Begin({.rank_class = rank_class, .subject = index}, *time,
                         input_.workload.core_share);
  }
  Wait(rank_class, index, *time);
}

std::string SimExecution::NoSuchRank(std::string_view what, int64_t rank) const {
  return rank < 0
             ? fmt::format("found no {}, expected a rank below {}", what, input_.total)
             : fmt::format("found the {} {}, expected a rank below {}", what, rank, input_.total);
}

void SimExecution::Send(RankClassId rank_class, SimIndex index, const SimNode& node) {
  const int64_t peer = states_[rank_class.index()].self->PeerOf(node);
  if (peer < 0 || peer >= input_.total) {
    return listener_.Fail(rank_class, index, NoSuchRank("receiver", peer));
  }
  if (input_.machine.times != nullptr) {
    const auto time =
        input_.machine.times->TimeOfMessage(input_.RankOf(rank_class), peer, node.bytes);
    if (!time) return listener_.Fail(rank_class, index, time.error().message);
  }
  messages_.Send(
      {.bytes = node.bytes,
       .tag = TagOf(node),
       .ordinal =
           input_.by_class ? input_.classes.partners[rank_class.index()][node.peer].there : 0,
       .source = rank_class,
       .target = input_.ClassOf(peer),
       .from = input_.RankOf(rank_class),
       .to = peer,
       .sender = {.kind = MessageReceiver::Kind::kNode,
                  .rank_class = rank_class,
                  .subject = index}},
      nullptr);
}

void SimExecution::Receive(RankClassId rank_class, SimIndex index, const SimNode& node) {
  const int64_t peer = states_[rank_class.index()].self->PeerOf(node);
  if (peer < 0 || peer >= input_.total) {
    return listener_.Fail(rank_class, index, NoSuchRank("sender", peer));
  }
  messages_.Receive(
      {.kind = MessageReceiver::Kind::kNode, .rank_class = rank_class, .subject = index},
      {.tag = TagOf(node),
       .bytes = node.bytes,
       .ordinal = input_.by_class ? input_.classes.partners[rank_class.index()][node.peer].here : 0,
       .source = input_.ClassOf(peer),
       .target = rank_class},
      peer, nullptr);
}

void SimExecution::Wait(RankClassId rank_class, SimIndex index, int64_t time) {
  timeline_.PlanLocal(rank_class, time, {.kind = LocalKind::kNodeDone, .subject = index});
}

void SimExecution::MessageDone(RankClassId rank_class, SimIndex index) {
  if (!input_.machine.has_recorded_times()) return Complete(rank_class, index);
  const SimNode& node = states_[rank_class.index()].program->nodes[index];
  const int64_t time = input_.machine.RecordedTimeOf(node);
  if (time == 0) return listener_.Fail(rank_class, index, kNoRecordedTime);
  Wait(rank_class, index, time);
}

// Skips a node without work. Its dependents are issued at the rank's next completion.
void SimExecution::Skip(RankClassId rank_class, SimIndex index) {
  State& state = states_[rank_class.index()];
  ties_.Skip();
  state.taken[SlotOf(state.program->nodes[index], state.group_slots)] = false;
  state.result.ends[index] = timeline_.now();
  --state.in_flight;
  --state.left;
  ++nodes_done_;
  for (const SimIndex child : state.program->children[index]) {
    if (--state.waits[child] == 0) state.freed.push_back(child);
  }
}

TieWatch::Completion SimExecution::BeforeCompletion(const State& state, SimIndex index) {
  TieWatch::Completion made{.children = state.program->children[index]};
  const size_t slot = SlotOf(state.program->nodes[index], state.group_slots);
  if (slot != kNoSlot) made.freed = slot;
  for (size_t i = 0; i < kNoSlot; ++i) {
    made.before[i] = {.free = !state.taken[i],
                      .ready = state.ready[i].empty() ? kNoIndex : state.ready[i].top()};
  }
  return made;
}

void SimExecution::Complete(RankClassId rank_class, SimIndex index) {
  State& state = states_[rank_class.index()];
  const SimNode& node = state.program->nodes[index];
  const int64_t now = timeline_.now();
  const int64_t begin = state.result.begins[index];
  TieWatch::Completion completion;
  if (input_.by_class) completion = BeforeCompletion(state, index);
  state.taken[SlotOf(node, state.group_slots)] = false;
  state.result.ends[index] = now;
  if (node.kind != NodeKind::kMetadata && node.kind != NodeKind::kUnknown) {
    state.busy[KindOf(node)].Add(begin, now);
  }
  if (!node.on_host && (node.kind == NodeKind::kCompute || input_.system.replay_only)) {
    state.result.computed += now - begin;
  }
  --state.in_flight;
  --state.left;
  ++nodes_done_;
  state.result.end = now;
  for (const SimIndex child : state.program->children[index]) {
    if (--state.waits[child] != 0) continue;
    MakeReady(state, child);
    if (input_.by_class) {
      completion.enabled.emplace_back(SlotOf(state.program->nodes[child], state.group_slots),
                                      child);
    }
  }
  ties_.Complete(std::move(completion));
  IssueReady(rank_class);
}

std::vector<SimRankResult> SimExecution::TakeResults() {
  std::vector<SimRankResult> results;
  results.reserve(states_.size());
  for (State& state : states_) {
    SimRankResult& one = state.result;
    one.finished = state.left == 0;
    for (const int64_t end : one.ends) one.wall = std::max(one.wall, end);
    one.host = state.busy[kHost].Total();
    one.device = state.busy[kDevice].Total();
    one.comm = state.busy[kComm].Total();
    one.memory = state.busy[kMemory].Total();
    results.push_back(std::move(one));
  }
  return results;
}

}  // namespace etude
