#include "src/sim/sim_execution.h"

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
      ranks_(input.rank_count()) {
  for (SimIndex i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.self = &input.RankOf(i);
    rank.program = rank.self->program.get();
    rank.waits = rank.program->waits;
    rank.left = rank.program->nodes.size();
    nodes_ += rank.left;
    rank.result.begins.assign(rank.left, -1);
    rank.result.ends.assign(rank.left, -1);
  }
}

SimExecution::Kind SimExecution::KindOf(const SimNode& node) {
  if (node.kind == NodeKind::kMemLoad || node.kind == NodeKind::kMemStore) return kMemory;
  if (node.kind == NodeKind::kCompute) return node.on_host ? kHost : kDevice;
  return kComm;
}

void SimExecution::MakeReady(Rank& rank, SimIndex index) {
  rank.ready[SlotOf(rank.program->nodes[index])].push(index);
}

void SimExecution::Begin() {
  for (Rank& rank : ranks_) {
    for (SimIndex node = 0; node < rank.waits.size(); ++node) {
      if (rank.waits[node] == 0) MakeReady(rank, node);
    }
  }
  for (SimIndex i = 0; i < ranks_.size(); ++i) {
    ties_.Begin(i, timeline_.now(), {.planned = -1});
    IssueReady(i);
  }
}

// Those that are ready now, by number, as far as there is room for them.
void SimExecution::IssueReady(SimIndex at) {
  Rank& rank = ranks_[at];
  if (rank.issuing) return;
  rank.issuing = true;
  while (true) {
    SimIndex best = kNoIndex;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (rank.ready[slot].empty() || (slot != kNoSlot && rank.taken[slot])) continue;
      best = std::min(best, rank.ready[slot].top());
    }
    if (best == kNoIndex) break;
    Issue(at, best);
  }
  rank.issuing = false;
  if (rank.freed.empty()) return;
  for (const SimIndex node : rank.freed) MakeReady(rank, node);
  rank.freed.clear();
  // Where nothing else is to come, ASTRA-sim ends here.
  if (rank.in_flight == 0) timeline_.PlanLocal(at, 0, {.kind = LocalKind::kWake});
}

void SimExecution::Issue(SimIndex at, SimIndex index) {
  Rank& rank = ranks_[at];
  const SimNode& node = rank.program->nodes[index];
  const SimSlot slot = SlotOf(node);
  rank.ready[slot].pop();
  rank.taken[slot] = true;
  rank.result.begins[index] = timeline_.now();
  ++rank.in_flight;
  if (input_.system.replay_only) {
    const int64_t time = RecordedTime(node);
    if (node.kind != NodeKind::kCompute) return Wait(at, index, time);
    return Wait(at, index, StragglerTime(input_.machine, input_.PlaceOf(at), time));
  }
  Start(at, index, node);
}

void SimExecution::Start(SimIndex at, SimIndex index, const SimNode& node) {
  std::optional<int64_t> time;
  switch (node.kind) {
    case NodeKind::kSend: return Send(at, index, node);
    case NodeKind::kRecv: return Receive(at, index, node);
    case NodeKind::kCollective: return collectives_.Begin(at, index, node);
    case NodeKind::kMetadata:
    case NodeKind::kUnknown: return Skip(at, index);
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore:
      time = memory_.Time(input_.PlaceOf(at), node.bytes, timeline_.now());
      if (!time)
        return listener_.Fail(at, index,
                              "found an access to remote memory, expected a memory "
                              "file with a memory-type other than NO_MEMORY_EXPANSION");
      return Wait(at, index, *time);
    default: break;
  }
  time = compute_.Time(input_.PlaceOf(at), node);
  if (!time) return Skip(at, index);
  Wait(at, index, *time);
}

std::string SimExecution::NoSuchRank(std::string_view what, int64_t rank) const {
  return rank < 0
             ? fmt::format("found no {}, expected a rank below {}", what, input_.total)
             : fmt::format("found the {} {}, expected a rank below {}", what, rank, input_.total);
}

void SimExecution::Send(SimIndex at, SimIndex index, const SimNode& node) {
  const int64_t peer = ranks_[at].self->PeerOf(node);
  if (peer < 0 || peer >= input_.total) {
    return listener_.Fail(at, index, NoSuchRank("receiver", peer));
  }
  messages_.Send({.bytes = node.bytes,
                  .tag = TagOf(node),
                  .ordinal = input_.by_class ? input_.classes.partners[at][node.peer].there : 0,
                  .source = at,
                  .target = input_.ClassOf(peer),
                  .from = input_.PlaceOf(at),
                  .to = peer,
                  .sender = {.kind = MessageReceiver::Kind::kNode, .rank = at, .subject = index}},
                 nullptr);
}

void SimExecution::Receive(SimIndex at, SimIndex index, const SimNode& node) {
  const int64_t peer = ranks_[at].self->PeerOf(node);
  if (peer < 0 || peer >= input_.total) {
    return listener_.Fail(at, index, NoSuchRank("sender", peer));
  }
  messages_.Receive({.kind = MessageReceiver::Kind::kNode, .rank = at, .subject = index},
                    {.tag = TagOf(node),
                     .bytes = node.bytes,
                     .ordinal = input_.by_class ? input_.classes.partners[at][node.peer].here : 0,
                     .source = input_.ClassOf(peer),
                     .target = at},
                    peer, nullptr);
}

void SimExecution::Wait(SimIndex at, SimIndex index, int64_t time) {
  timeline_.PlanLocal(at, time, {.kind = LocalKind::kNodeDone, .subject = index});
}

// A node without work frees those that wait for it, which are not issued before the rank's next
// completion.
void SimExecution::Skip(SimIndex at, SimIndex index) {
  Rank& rank = ranks_[at];
  ties_.Skip();
  rank.taken[SlotOf(rank.program->nodes[index])] = false;
  rank.result.ends[index] = timeline_.now();
  --rank.in_flight;
  --rank.left;
  ++nodes_done_;
  for (const SimIndex child : rank.program->children[index]) {
    if (--rank.waits[child] == 0) rank.freed.push_back(child);
  }
}

TieWatch::Completion SimExecution::BeforeCompletion(const Rank& rank, SimIndex index) {
  TieWatch::Completion made{.children = rank.program->children[index]};
  const SimSlot slot = SlotOf(rank.program->nodes[index]);
  if (slot != kNoSlot) made.freed = slot;
  for (size_t i = 0; i < kNoSlot; ++i) {
    made.before[i] = {.free = !rank.taken[i],
                      .ready = rank.ready[i].empty() ? kNoIndex : rank.ready[i].top()};
  }
  return made;
}

void SimExecution::Complete(SimIndex at, SimIndex index) {
  Rank& rank = ranks_[at];
  const SimNode& node = rank.program->nodes[index];
  const int64_t now = timeline_.now();
  const int64_t begin = rank.result.begins[index];
  TieWatch::Completion completion;
  if (input_.by_class) completion = BeforeCompletion(rank, index);
  rank.taken[SlotOf(node)] = false;
  rank.result.ends[index] = now;
  if (node.kind != NodeKind::kMetadata && node.kind != NodeKind::kUnknown) {
    rank.busy[KindOf(node)].Add(begin, now);
  }
  if (!node.on_host && (node.kind == NodeKind::kCompute || input_.system.replay_only)) {
    rank.result.computed += now - begin;
  }
  --rank.in_flight;
  --rank.left;
  ++nodes_done_;
  rank.result.end = now;
  for (const SimIndex child : rank.program->children[index]) {
    if (--rank.waits[child] != 0) continue;
    MakeReady(rank, child);
    if (input_.by_class) {
      completion.enabled.emplace_back(SlotOf(rank.program->nodes[child]), child);
    }
  }
  ties_.Complete(std::move(completion));
  IssueReady(at);
}

std::vector<SimRankResult> SimExecution::TakeResults() {
  std::vector<SimRankResult> results;
  results.reserve(ranks_.size());
  for (Rank& rank : ranks_) {
    SimRankResult& one = rank.result;
    one.finished = rank.left == 0;
    for (const int64_t end : one.ends) one.wall = std::max(one.wall, end);
    one.host = rank.busy[kHost].Total();
    one.device = rank.busy[kDevice].Total();
    one.comm = rank.busy[kComm].Total();
    one.memory = rank.busy[kMemory].Total();
    results.push_back(std::move(one));
  }
  return results;
}

}  // namespace etude
