#include "src/sim/plan/plan_runs.h"

#include <algorithm>

namespace etude {
namespace {

bool TakeCounts(const std::vector<uint32_t>& numbers, std::vector<int64_t>& counts) {
  const auto is_there = [&](uint32_t number) { return counts[number] > 0; };
  if (!std::ranges::all_of(numbers, is_there)) return false;
  for (const uint32_t number : numbers) --counts[number];
  return true;
}

}  // namespace

SimIndex PlanRuns::RunOf(const Key& key, const PlanProgram& program,
                         const std::vector<int64_t>& ranks) {
  const auto [found, is_new] = run_of_.try_emplace(key);
  if (!is_new) return found->second;
  if (free_runs_.empty()) {
    found->second = static_cast<SimIndex>(runs_.size());
    runs_.emplace_back();
  } else {
    found->second = free_runs_.back();
    free_runs_.pop_back();
  }
  Run& run = runs_[found->second];
  run = {.key = key, .program = &program, .ranks = ranks, .gpus = {}, .left = ranks.size()};
  run.gpus.resize(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const CollectivePlan::Gpu& gpu = program.plan->gpus[i];
    run.gpus[i].notified.resize(gpu.channels.size());
    run.gpus[i].semaphores = gpu.semaphores;
    run.gpus[i].blocks.resize(gpu.blocks.size());
    run.gpus[i].left = gpu.blocks.size();
  }
  return found->second;
}

void PlanRuns::Begin(const Key& key, const PlanProgram& program, const std::vector<int64_t>& ranks,
                     size_t me, SimIndex stream, const SimChain& chain) {
  const SimIndex run = RunOf(key, program, ranks);
  Gpu& gpu = runs_[run].gpus[me];
  gpu.begun = true;
  gpu.stream = stream;
  if (gpu.left == 0) {
    if (--runs_[run].left == 0) Release(run);
    return actions_.EndPlan(stream, chain);
  }
  const auto blocks = static_cast<uint32_t>(gpu.blocks.size());
  for (uint32_t block = 0; block < blocks; ++block) {
    if (Advance(run, static_cast<uint32_t>(me), block, chain)) return;
  }
}

const PlanAction& PlanRuns::ActionOf(SimIndex run, uint32_t gpu, uint32_t block) const {
  const Run& one = runs_[run];
  return one.program->gpus[gpu][block][one.gpus[gpu].blocks[block].next];
}

bool PlanRuns::Advance(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain) {
  const size_t steps = runs_[run].program->gpus[gpu][block].size();
  while (runs_[run].gpus[gpu].blocks[block].next < steps) {
    if (!Step(run, gpu, block, chain)) return false;
  }
  Gpu& one = runs_[run].gpus[gpu];
  if (--one.left > 0) return false;
  const SimIndex stream = one.stream;
  --runs_[run].left;
  Release(run);
  actions_.EndPlan(stream, chain);
  return true;
}

// Frees the run if all GPUs have ended, and nothing is under way.
void PlanRuns::Release(SimIndex run) {
  Run& one = runs_[run];
  if (one.left > 0) return;
  run_of_.erase(one.key);
  if (one.acts == 0) free_runs_.push_back(run);
}

bool PlanRuns::Step(SimIndex number, uint32_t gpu, uint32_t block, const SimChain& chain) {
  const PlanAction& action = ActionOf(number, gpu, block);
  const PlanOp& op = *action.op;
  Run& run = runs_[number];
  Gpu& one = run.gpus[gpu];
  Block& state = one.blocks[block];
  const auto waits = [&](bool is_done) {
    state.phase = is_done ? Block::Phase::kReady : Block::Phase::kBlocked;
    if (is_done) ++state.next;
    return is_done;
  };
  switch (op.step) {
    case PlanStep::kMove: return Move(number, gpu, block, chain);
    case PlanStep::kSignal: Signal(number, gpu, block, chain); break;
    case PlanStep::kWait: return waits(TakeCounts(op.channels, one.notified));
    case PlanStep::kFlush: return waits(state.by_port == 0);
    case PlanStep::kAcquire: return waits(TakeCounts(op.semaphores, one.semaphores));
    case PlanStep::kRelease:
      for (const uint32_t semaphore : op.semaphores) ++one.semaphores[semaphore];
      ++state.next;
      Wake(number, gpu, chain);
      return true;
    case PlanStep::kBarrier: {
      int64_t& arrived = one.barriers[op.barrier];
      if (!state.at_barrier) {
        state.at_barrier = true;
        ++arrived;
      }
      if (arrived < op.barrier_blocks) return waits(false);
      arrived = 0;
      for (uint32_t i = 0; i < one.blocks.size(); ++i) {
        Block& other = one.blocks[i];
        if (!other.at_barrier || ActionOf(number, gpu, i).op->barrier != op.barrier) continue;
        other.at_barrier = false;
        ++other.next;
      }
      state.phase = Block::Phase::kReady;
      Wake(number, gpu, chain);
      return true;
    }
    case PlanStep::kSwitch:
    case PlanStep::kMulticast: {
      if (state.phase == Block::Phase::kWrites) {  // done
        state.phase = Block::Phase::kReady;
        break;
      }
      state.phase = Block::Phase::kWrites;
      SwitchTransfer transfer{.type = op.step == PlanStep::kSwitch ? CollectiveType::kAllReduce
                                                                   : CollectiveType::kBroadcast,
                              .members = {},
                              .root = 0,
                              .bytes = action.bytes};
      for (const int64_t member : op.group) {
        if (member == static_cast<int64_t>(gpu)) transfer.root = std::ssize(transfer.members);
        transfer.members.push_back(run.ranks[static_cast<size_t>(member)]);
      }
      ++run.acts;
      const SimIndex act =
          acts_.Add({.kind = Act::Kind::kSwitch, .run = number, .gpu = gpu, .block = block});
      const Status sent = actions_.SendBySwitchesOf(transfer, run.ranks[gpu], act, chain);
      if (!sent) actions_.FailPlan(one.stream, sent.error());
      return false;
    }
  }
  ++state.next;
  return true;
}

void PlanRuns::Start(const Act& act, int64_t from, int64_t to, int64_t bytes,
                     const SimChain& chain) {
  ++runs_[act.run].acts;
  actions_.SendOf(from, to, bytes, acts_.Add(act), chain);
}

bool PlanRuns::Move(SimIndex number, uint32_t gpu, uint32_t block, const SimChain& chain) {
  const PlanAction& action = ActionOf(number, gpu, block);
  Run& run = runs_[number];
  Block& state = run.gpus[gpu].blocks[block];
  const int64_t rank = run.ranks[gpu];
  Act act{.kind = Act::Kind::kRequest, .run = number, .gpu = gpu, .block = block};
  if (state.phase == Block::Phase::kReady) {
    state.phase = Block::Phase::kReads;
    state.pending = std::ssize(action.reads);
    for (const PlanMessage& read : action.reads) {
      act.other = read.gpu;
      act.bytes = read.bytes;
      Start(act, rank, run.ranks[read.gpu], 0, chain);
    }
    if (!action.reads.empty()) return false;
  }
  if (state.phase == Block::Phase::kReads) {
    state.phase = Block::Phase::kWorks;
    if (action.accesses > 0) {
      act.kind = Act::Kind::kWork;
      ++run.acts;
      actions_.WorkOf(rank, action.bytes, action.accesses, acts_.Add(act), chain);
      return false;
    }
  }
  if (state.phase == Block::Phase::kWorks) {
    const bool by_port = action.op->by_port;
    act.kind = by_port ? Act::Kind::kPortWrite : Act::Kind::kWrite;
    state.phase = Block::Phase::kWrites;
    (by_port ? state.by_port : state.pending) += std::ssize(action.writes);
    for (const PlanMessage& write : action.writes) {
      Start(act, rank, run.ranks[write.gpu], write.bytes, chain);
    }
    if (!by_port && !action.writes.empty()) return false;
  }
  state.phase = Block::Phase::kReady;
  ++state.next;
  return true;
}

// Sends a message without bytes on each channel that has another end.
void PlanRuns::Signal(SimIndex number, uint32_t gpu, uint32_t block, const SimChain& chain) {
  const PlanOp& op = *ActionOf(number, gpu, block).op;
  Run& run = runs_[number];
  for (const uint32_t channel : op.channels) {
    const CollectivePlan::Channel& end = run.program->plan->gpus[gpu].channels[channel];
    if (end.other < 0) continue;
    Block& state = run.gpus[gpu].blocks[block];
    if (op.by_port && state.by_port > 0) {
      state.following.emplace_back(end.gpu, end.other);
      continue;
    }
    Start({.kind = Act::Kind::kSignal,
           .run = number,
           .gpu = gpu,
           .block = block,
           .other = end.gpu,
           .channel = end.other},
          run.ranks[gpu], run.ranks[end.gpu], 0, chain);
  }
}

void PlanRuns::Wake(SimIndex number, uint32_t gpu, const SimChain& chain) {
  const auto blocks = static_cast<uint32_t>(runs_[number].gpus[gpu].blocks.size());
  if (!runs_[number].gpus[gpu].begun) return;
  for (uint32_t block = 0; block < blocks; ++block) {
    Block& state = runs_[number].gpus[gpu].blocks[block];
    if (state.phase != Block::Phase::kBlocked) continue;
    state.phase = Block::Phase::kReady;
    if (Advance(number, gpu, block, chain)) return;
  }
}

void PlanRuns::PortsAreDone(SimIndex number, uint32_t gpu, uint32_t block, const SimChain& chain) {
  std::vector<std::pair<uint32_t, int64_t>> following;
  following.swap(runs_[number].gpus[gpu].blocks[block].following);
  for (const auto& [other, channel] : following) {
    ++runs_[number].gpus[other].notified[static_cast<size_t>(channel)];
  }
  Wake(number, gpu, chain);
  for (const auto& [other, channel] : following) Wake(number, other, chain);
}

void PlanRuns::Done(SimIndex index, const SimChain& chain) {
  const Act act = acts_.Take(index);
  Run& run = runs_[act.run];
  --run.acts;
  if (run.left == 0) {  // chunks or signals that nothing waits for
    if (run.acts == 0) free_runs_.push_back(act.run);
    return;
  }
  Block& state = run.gpus[act.gpu].blocks[act.block];
  switch (act.kind) {
    case Act::Kind::kRequest: {
      Act read = act;
      read.kind = Act::Kind::kRead;
      return Start(read, run.ranks[act.other], run.ranks[act.gpu], act.bytes, chain);
    }
    case Act::Kind::kSignal:
      ++run.gpus[act.other].notified[static_cast<size_t>(act.channel)];
      return Wake(act.run, act.other, chain);
    case Act::Kind::kPortWrite:
      if (--state.by_port == 0) PortsAreDone(act.run, act.gpu, act.block, chain);
      return;
    case Act::Kind::kRead:
      if (--state.pending > 0) return;
      break;
    case Act::Kind::kWrite:
      if (--state.pending > 0) return;
      break;
    case Act::Kind::kWork:
    case Act::Kind::kSwitch: break;
  }
  Advance(act.run, act.gpu, act.block, chain);
}

}  // namespace etude
