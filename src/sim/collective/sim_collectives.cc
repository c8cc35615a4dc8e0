#include "src/sim/collective/sim_collectives.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/base/text/format_count.h"
#include "src/sim/models/sim_compute_model.h"
#include "src/sim/plan/collective_plan.h"

namespace etude {
namespace {

constexpr int64_t kGroupStreams = int64_t{1} << 32;

std::string NoRoot(const SimNode& node, const CollectiveCall& call) {
  return fmt::format("found the root {} of {} ranks", node.root, call.members);
}

}  // namespace

SimCollectives::SimCollectives(const SimInput& input, const SimCollectiveModel& model,
                               SimEndpointModel& endpoint, SimTimeline& timeline,
                               SimMessages& messages, TieWatch& ties, NodeListener& listener)
    : input_(input),
      system_(input.system),
      model_(model),
      endpoint_(endpoint),
      timeline_(timeline),
      messages_(messages),
      ties_(ties),
      listener_(listener),
      most_running_(CeilDiv(input.system.active_chunks, input.system.queues)),
      plans_(*this) {
  const size_t dims = input.machine.dims.size();
  const bool at_once = input.machine.runs_groups_at_once();
  for (SimIndex i = 0; i < input.class_count(); ++i) {
    const SimRank& rank = input.SimRankOf(RankClassId(i));
    State& state = states_.emplace_back(rank.groups.size(), dims, at_once ? kGroupSlots : 1,
                                        static_cast<size_t>(system_.queues));
    if (at_once) state.group_slots = GroupSlotsOf(rank, input.workload.groups, input.total);
  }
}

// ---- nodes to streams

std::optional<CollectiveCall> SimCollectives::CallOf(RankClassId rank_class, SimIndex index,
                                                     const SimNode& node) {
  const auto fail = [&](std::string_view what) {
    listener_.Fail(rank_class, index, what);
    return std::nullopt;
  };
  switch (node.collective) {
    case CollectiveType::kAllReduce:
    case CollectiveType::kAllGather:
    case CollectiveType::kAllToAll:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kBroadcast:
    case CollectiveType::kReduce:
    case CollectiveType::kGather:
    case CollectiveType::kScatter:
    case CollectiveType::kBarrier: break;
    case CollectiveType::kReduceScatterBlock:
    case CollectiveType::kUnknown:
      return fail(fmt::format(
          "found {}, expected all_reduce, all_gather, all_to_all, reduce_scatter, broadcast, "
          "reduce, gather, scatter or barrier",
          node.collective == CollectiveType::kUnknown ? "an unknown type of collective"
                                                      : Name(node.collective)));
  }
  if (node.bytes < 0) return fail("found fewer than 0 bytes");
  const bool has_any = model_.Has(node.collective) || system_.programs.contains(node.collective) ||
                       system_.plans.contains(node.collective);
  if (!has_any) {
    std::string key(Name(node.collective));
    std::ranges::replace(key, '_', '-');
    return fail(
        fmt::format("found no algorithm for {}, expected '{}-implementation' in the system "
                    "file",
                    Name(node.collective), key));
  }
  CollectiveCall call{.type = node.collective,
                      .dims = node.dims,
                      .bytes = node.bytes,
                      .rank = input_.RankOf(rank_class),
                      .me = input_.RankOf(rank_class),
                      .members = input_.total};
  const int64_t number = input_.SimRankOf(rank_class).GroupOf(node);
  const auto has_root = [&] { return node.root >= 0 && node.root < call.members; };
  call.root = node.root;
  if (number == 0 && !has_root()) return fail(NoRoot(node, call));
  if (number == 0) return call;
  const auto found = input_.workload.groups.find(number);
  if (found == input_.workload.groups.end()) {
    return fail(
        fmt::format("found group {}, expected its ranks in a file of process groups", number));
  }
  const std::vector<int64_t>& group = found->second;
  call.members = static_cast<int64_t>(group.size());
  if (!has_root()) return fail(NoRoot(node, call));
  if (call.members == input_.total) {
    call.root = group[static_cast<size_t>(node.root)];
    return call;
  }
  call.group = &group;
  call.me = std::ranges::find(group, call.rank) - group.begin();
  if (call.me == call.members) {
    return fail("found a collective in a group that does not contain the rank");
  }
  return call;
}

int64_t SimCollectives::PriorityOf(State& state, const SimNode& node) const {
  switch (system_.order) {
    case StreamOrder::kLifo: return state.next_priority++;
    case StreamOrder::kFifo: return state.next_priority--;
    case StreamOrder::kExplicit: break;
  }
  return node.priority;
}

int64_t SimCollectives::NextStream(RankClassId rank_class, const SimNode& node, bool of_all) {
  State& state = states_[rank_class.index()];
  return of_all ? state.next_stream++ : state.next_of_group[node.group - 1]++;
}

void SimCollectives::Begin(RankClassId rank_class, SimIndex index, const SimNode& node) {
  if (system_.Replays(node)) {
    timeline_.PlanLocal(rank_class, RecordedTime(node),
                        {.kind = LocalKind::kNodeDone, .subject = index});
    return;
  }
  std::optional<CollectiveCall> call = CallOf(rank_class, index, node);
  if (!call) return;
  ties_.BeginCollective();
  const std::vector<SimRank>* custom = input_.machine.FindPrograms(node.collective, call->members);
  const bool is_custom = custom != nullptr;
  if (is_custom && static_cast<size_t>(call->me) >= custom->size()) {
    return listener_.Fail(rank_class, index, "found no program of the collective for this rank");
  }
  const CollectivePlan* plan = FittingPlan(system_, node.collective, call->members, node.bytes);
  if ((is_custom || plan != nullptr) && HasRoot(node.collective) && node.root != 0) {
    return listener_.Fail(
        rank_class, index,
        fmt::format("found the root {} of {}, expected 0, for which its {} is", node.root,
                    Name(node.collective), is_custom ? "program" : "plan"));
  }
  const PlanProgram* planned = nullptr;
  if (plan != nullptr) {
    planned = PlanProgramOf(*plan, node.bytes, rank_class, index);
    if (planned == nullptr) return;
  } else if (!is_custom && !model_.Has(node.collective)) {
    const auto programs = system_.programs.find(node.collective);
    return listener_.Fail(
        rank_class, index,
        programs == system_.programs.end()
            ? fmt::format(
                  "found {} of {} ranks and {} bytes, which its plan and no algorithm is for",
                  Name(node.collective), call->members, node.bytes)
            : fmt::format("found {} of {} ranks, whose algorithm has programs of {}, and no other "
                          "algorithm is for it",
                          Name(node.collective), call->members,
                          FormatCount(programs->second.size(), "rank")));
  }
  State& state = states_[rank_class.index()];
  const size_t slot =
      state.group_slots.empty() ? 0 : state.group_slots[node.group] - kFirstGroupSlot;
  const SimCollectiveModel::Chunks chunks = model_.ChunksOf(*call);
  const int64_t streams = is_custom || planned != nullptr ? 1 : chunks.count;
  const SimIndex set = data_sets_.Add(
      {.rank_class = rank_class, .node = index, .left = streams, .begin = timeline_.now()});
  const int64_t priority = PriorityOf(states_[rank_class.index()], node);
  int64_t first_tag = 0;
  if (call->group != nullptr) {
    const int64_t group = input_.SimRankOf(rank_class).GroupOf(node);
    first_tag = input_.classes.kind_of_group.at(group) * kGroupStreams;
  }
  for (int64_t i = 0; i < streams; ++i) {
    CollectiveStream& stream = NewStream();
    stream.rank_class = rank_class;
    stream.node = index;
    stream.data_set = set;
    stream.priority = priority;
    stream.begun = 0;
    stream.exchanges = 0;
    stream.custom.rank = nullptr;
    stream.custom.group = nullptr;
    stream.custom.left = 0;
    stream.plan = planned;
    stream.tag = kTagSpace;
    if (planned != nullptr) {
      call->stream = NextStream(rank_class, node, call->group == nullptr);
      stream.tag = first_tag + call->stream + kTagSpace;
      stream.phases = {
          {.type = node.collective,
           .bytes = node.bytes,
           .members = {.listed = call->group, .count = call->members, .me = call->me}}};
    } else if (is_custom) {
      stream.custom.rank = &(*custom)[static_cast<size_t>(call->me)];
      stream.custom.group = input_.machine.graph == nullptr ? nullptr : call->group;
      stream.phases = {{.type = node.collective, .bytes = node.bytes}};
    } else {
      call->stream = NextStream(rank_class, node, call->group == nullptr);
      stream.tag = first_tag + call->stream + kTagSpace;
      const Status made = model_.MakePhases(*call, chunks.bytes, state.turns[slot], stream.phases);
      if (!made) return listener_.Fail(rank_class, index, made.error().message);
    }
    const size_t queues = input_.machine.dims.size() * static_cast<size_t>(system_.queues);
    for (CollectivePhase& phase : stream.phases) {
      phase.queue += static_cast<SimIndex>(slot * queues);
    }
    now_ = {.rank_class = rank_class, .node = index, .until = timeline_.now()};
    if (stream.phases.empty()) {
      timeline_.PlanLocal(
          rank_class, 0,
          {.kind = LocalKind::kStreamless, .subject = stream.id, .chain = chains_.Add(now_)});
    } else {
      NextPhase(stream);
    }
  }
}

CollectiveStream& SimCollectives::NewStream() {
  if (free_streams_.empty()) {
    CollectiveStream& stream = streams_.emplace_back();
    stream.id = static_cast<SimIndex>(streams_.size() - 1);
    return stream;
  }
  CollectiveStream& stream = streams_[free_streams_.back()];
  free_streams_.pop_back();
  return stream;
}

// ---- queues

void SimCollectives::Streamless(const LocalEvent& event) {
  now_ = chains_.Take(event.chain);
  Finish(event.subject);
}

void SimCollectives::Finish(SimIndex id) {
  const SimIndex set = streams_[id].data_set;
  if (--data_sets_[set].left == 0) {
    const DataSet done = data_sets_.Take(set);
    states_[done.rank_class.index()].ends.push_back({.node = done.node,
                                                     .source_class = now_.rank_class.value(),
                                                     .source_node = now_.node,
                                                     .latency = now_.latency,
                                                     .transfer = now_.transfer,
                                                     .handling = now_.handling,
                                                     .queue = now_.queue});
    listener_.Complete(done.rank_class, done.node);
  }
  free_streams_.push_back(id);
}

std::vector<std::vector<SimCollectiveEnd>> SimCollectives::TakeEnds() {
  std::vector<std::vector<SimCollectiveEnd>> all;
  all.reserve(states_.size());
  for (State& state : states_) {
    std::ranges::sort(state.ends, {}, &SimCollectiveEnd::node);
    all.push_back(std::move(state.ends));
  }
  return all;
}

std::vector<std::vector<SimProgramWait>> SimCollectives::ProgramWaits() const {
  std::vector<std::vector<SimProgramWait>> all(states_.size());
  for (const CollectiveStream& stream : streams_) {
    const ProgramState& custom = stream.custom;
    if (custom.rank == nullptr || custom.left == 0) continue;
    const SimProgram& program = *custom.rank->program;
    const auto first = std::ranges::find(custom.waits, 0U) - custom.waits.begin();
    const auto at = static_cast<size_t>(first);
    if (at == custom.waits.size()) continue;
    const SimNode& node = program.nodes[at];
    all[stream.rank_class.index()].push_back({.node = stream.node,
                                              .id = program.source_ids[at],
                                              .receives = node.kind == NodeKind::kRecv,
                                              .peer = custom.rank->PeerOf(node),
                                              .bytes = node.bytes,
                                              .tag = node.tag});
  }
  return all;
}

// Moves the stream from its queue, if it is in one, to the next.
void SimCollectives::NextPhase(CollectiveStream& stream) {
  const RankClassId rank_class = stream.rank_class;
  // Another collective may begin where this one ends.
  const Leaving leaving{.data_set = stream.data_set, .chain = now_};
  const bool was_queued = stream.begun > 0;
  const SimIndex old = was_queued ? stream.phase.queue : 0;
  const bool ends = stream.begun == stream.phases.size();
  SimIndex next = 0;
  if (ends) {
    if (was_queued) ties_.EndStream(stream.data_set, old);
    Finish(stream.id);
  } else {
    stream.chain = now_;
    stream.phase = stream.phases[stream.begun++];
    next = stream.phase.queue;
    State& state = states_[rank_class.index()];
    Queue& queue = state.queues[next];
    const bool starts = queue.running < most_running_ && queue.waiting.empty();
    ties_.TouchQueue(next, starts && !(was_queued && old == next)
                               ? TieWatch::QueueStep::kEnterAndStart
                               : TieWatch::QueueStep::kEnter);
    queue.waiting.push(
        {.priority = stream.priority, .order = state.next_order++, .stream = stream.id});
  }
  if (was_queued) {
    ties_.TouchQueue(old, TieWatch::QueueStep::kLeave);
    --states_[rank_class.index()].queues[old].running;
    StartStreams(rank_class, old, &leaving);
  }
  if (!ends) StartStreams(rank_class, next, nullptr);
}

void SimCollectives::StartStreams(RankClassId rank_class, SimIndex number, const Leaving* leaving) {
  Queue& queue = states_[rank_class.index()].queues[number];
  while (queue.running < most_running_ && !queue.waiting.empty()) {
    const SimIndex id = queue.waiting.top().stream;
    queue.waiting.pop();
    ++queue.running;
    now_ = ChainOfStart(streams_[id], leaving);
    Start(streams_[id]);
  }
}

// A stream that waited continues the chain of the stream it waited for, if both belong to one
// collective.
SimChain SimCollectives::ChainOfStart(const CollectiveStream& stream,
                                      const Leaving* leaving) const {
  SimChain chain = stream.chain;
  if (chain.until == timeline_.now()) return chain;
  if (leaving != nullptr && leaving->data_set == stream.data_set) return leaving->chain;
  chain.Wait(timeline_.now());
  return chain;
}

// ---- stream actions

void SimCollectives::Start(CollectiveStream& stream) {
  if (stream.plan != nullptr) return StartPlan(stream);
  if (stream.custom.rank != nullptr) return StartProgram(stream);
  stream.algorithm = &AlgorithmOf(stream.phase);
  stream.algorithm->Start(stream, *this);
}

// If no collective sent the message, its time counts as waiting.
SimChain SimCollectives::ChainOf(const CollectiveStream& stream, const SimChain* told) const {
  if (told != nullptr) return *told;
  SimChain chain{.rank_class = stream.rank_class,
                 .node = stream.node,
                 .until = data_sets_[stream.data_set].begin};
  chain.Wait(timeline_.now());
  return chain;
}

void SimCollectives::MessageCame(SimIndex id, const SimChain* chain) {
  CollectiveStream& stream = streams_[id];
  now_ = ChainOf(stream, chain);
  ties_.TouchStream(id, TieWatch::StreamStep::kArrival);
  stream.algorithm->MessageCame(stream, *this);
}

void SimCollectives::JoinMembers(const CollectiveStream& stream) {
  const CollectivePhase& phase = stream.phase;
  const Joint joint{stream.tag, phase.dim, phase.members.RankAt(0), phase.type, phase.bytes};
  std::vector<SimIndex>& streams = joining_[joint];
  streams.push_back(stream.id);
  if (static_cast<int64_t>(streams.size()) < phase.members.count) return;
  std::ranges::sort(streams, {}, [&](SimIndex id) { return streams_[id].phase.members.me; });
  SwitchTransfer transfer{.type = phase.type, .root = phase.root, .bytes = phase.bytes};
  for (int64_t i = 0; i < phase.members.count; ++i) {
    transfer.members.push_back(phase.members.RankAt(i));
  }
  const MessageReceiver done{.kind = MessageReceiver::Kind::kMembers,
                             .rank_class = stream.rank_class,
                             .subject = joined_.Add(std::move(streams))};
  joining_.erase(joint);
  const Status sent = messages_.SendBySwitches(transfer, done, now_);
  if (!sent) listener_.Fail(stream.rank_class, stream.node, sent.error().message);
}

void SimCollectives::SwitchesDone(SimIndex members, const SimChain& chain) {
  for (const SimIndex id : joined_.Take(members)) MessageCame(id, &chain);
}

void SimCollectives::Handled(const LocalEvent& event) {
  if (!event.reduces) return Reduced(event);
  ties_.TouchStream(event.subject, TieWatch::StreamStep::kReduction);
  timeline_.PlanLocal(
      streams_[event.subject].rank_class, ReductionTime(system_, event.bytes),
      {.kind = LocalKind::kReduced, .subject = event.subject, .chain = event.chain});
}

void SimCollectives::Reduced(const LocalEvent& event) {
  CollectiveStream& stream = streams_[event.subject];
  now_ = chains_.Take(event.chain);
  now_.Handle(timeline_.now());
  ties_.TouchStream(event.subject, TieWatch::StreamStep::kStep);
  stream.algorithm->Handled(stream, *this);
}

void SimCollectives::Send(const CollectiveStream& stream, int64_t target, int64_t bytes,
                          int64_t ordinal) {
  messages_.Send({.bytes = bytes,
                  .tag = stream.tag,
                  .ordinal = input_.by_class ? ordinal : 0,
                  .source = stream.rank_class,
                  .target = input_.ClassOf(target),
                  .from = input_.RankOf(stream.rank_class),
                  .to = target},
                 &now_);
}

void SimCollectives::Receive(const CollectiveStream& stream, int64_t source, int64_t bytes,
                             int64_t ordinal) {
  messages_.Receive({.kind = MessageReceiver::Kind::kStream,
                     .rank_class = stream.rank_class,
                     .subject = stream.id},
                    {.tag = stream.tag,
                     .bytes = bytes,
                     .ordinal = input_.by_class ? ordinal : 0,
                     .source = input_.ClassOf(source),
                     .target = stream.rank_class},
                    source, &now_);
}

void SimCollectives::Handle(const CollectiveStream& stream, const Handling& handling) {
  endpoint_.Handle(stream.rank_class, stream.phase.in_group, handling,
                   {.kind = LocalKind::kHandled,
                    .reduces = handling.reduces,
                    .subject = stream.id,
                    .chain = chains_.Add(now_),
                    .bytes = handling.bytes});
}

// ---- collectives defined by plans

const PlanProgram* SimCollectives::PlanProgramOf(const CollectivePlan& plan, int64_t bytes,
                                                 RankClassId rank_class, SimIndex node) {
  const auto found = plan_programs_.find({&plan, bytes});
  if (found != plan_programs_.end()) return &found->second;
  Result<PlanProgram> made = MakePlanProgram(plan, bytes);
  if (!made) {
    listener_.Fail(rank_class, node, made.error().message);
    return nullptr;
  }
  return &plan_programs_.emplace(std::pair(&plan, bytes), *std::move(made)).first->second;
}

void SimCollectives::StartPlan(CollectiveStream& stream) {
  const PhaseMembers& members = stream.phase.members;
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < members.count; ++i) ranks.push_back(members.RankAt(i));
  plans_.Begin({stream.tag, ranks[0]}, *stream.plan, ranks, static_cast<size_t>(members.me),
               stream.id, now_);
}

void SimCollectives::PlanWorkDone(const LocalEvent& event) {
  SimChain chain = chains_.Take(event.chain);
  chain.Handle(timeline_.now());
  plans_.Done(event.subject, chain);
}

void SimCollectives::SendOf(int64_t from, int64_t to, int64_t bytes, SimIndex action,
                            const SimChain& chain) {
  messages_.SendAlone({.bytes = bytes,
                       .source = input_.ClassOf(from),
                       .target = input_.ClassOf(to),
                       .from = from,
                       .to = to,
                       .sender = {.kind = MessageReceiver::Kind::kPlan,
                                  .rank_class = input_.ClassOf(from),
                                  .subject = action}},
                      chain);
}

Status SimCollectives::SendBySwitchesOf(const SwitchTransfer& transfer, int64_t from,
                                        SimIndex action, const SimChain& chain) {
  return messages_.SendBySwitches(
      transfer,
      {.kind = MessageReceiver::Kind::kPlan, .rank_class = input_.ClassOf(from), .subject = action},
      chain);
}

void SimCollectives::WorkOf(int64_t rank, int64_t bytes, int64_t accesses, SimIndex action,
                            const SimChain& chain) {
  // An addition is three accesses.
  timeline_.PlanLocal(
      input_.ClassOf(rank), ReductionTime(system_, bytes) / 3 * accesses,
      {.kind = LocalKind::kPlanDone, .subject = action, .chain = chains_.Add(chain)});
}

void SimCollectives::EndPlan(SimIndex stream, const SimChain& chain) {
  now_ = chain;
  NextPhase(streams_[stream]);
}

void SimCollectives::FailPlan(SimIndex stream, const Error& error) {
  listener_.Fail(streams_[stream].rank_class, streams_[stream].node, error.message);
}

// ---- collectives defined by programs: every ready node begins

void SimCollectives::StartProgram(CollectiveStream& stream) {
  const SimProgram& program = *stream.custom.rank->program;
  stream.custom.waits = program.waits;
  stream.custom.left = program.nodes.size();
  for (SimIndex node = 0; node < program.nodes.size(); ++node) {
    if (program.waits[node] == 0) IssueProgramNode(stream, node);
  }
  if (program.nodes.empty()) NextPhase(stream);
}

void SimCollectives::IssueProgramNode(CollectiveStream& stream, SimIndex index) {
  const SimNode& node = stream.custom.rank->program->nodes[index];
  int64_t peer = stream.custom.rank->PeerOf(node);
  const std::vector<int64_t>* group = stream.custom.group;
  if (group != nullptr && peer >= 0 && peer < std::ssize(*group)) {
    peer = (*group)[static_cast<size_t>(peer)];
  } else if (group != nullptr) {
    peer = -1;
  }
  const MessageReceiver done{.kind = MessageReceiver::Kind::kCustom,
                             .rank_class = stream.rank_class,
                             .subject = stream.id,
                             .node = index};
  const bool communicates = node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv;
  if (communicates && (peer < 0 || peer >= input_.total)) {
    return listener_.Fail(stream.rank_class, stream.node,
                          "found a message to or from no rank in its program");
  }
  if (node.kind == NodeKind::kCollective && input_.machine.graph != nullptr) {
    const uint64_t id = stream.custom.rank->program->source_ids[index];
    return listener_.Fail(stream.rank_class, stream.node,
                          fmt::format("found {} as node {} of the program of the collective, "
                                      "expected sends, receives and computations",
                                      Name(node.collective), id));
  }
  if (node.kind == NodeKind::kSend) {
    messages_.Send({.bytes = node.bytes,
                    .tag = TagOf(node),
                    .source = stream.rank_class,
                    .target = input_.ClassOf(peer),
                    .from = input_.RankOf(stream.rank_class),
                    .to = peer,
                    .sender = done},
                   &now_);
  } else if (node.kind == NodeKind::kRecv) {
    messages_.Receive(done,
                      {.tag = TagOf(node),
                       .bytes = node.bytes,
                       .source = input_.ClassOf(peer),
                       .target = stream.rank_class},
                      peer, &now_);
  } else {
    timeline_.PlanLocal(stream.rank_class, RecordedTime(node),
                        {.kind = LocalKind::kCustomDone,
                         .subject = stream.id,
                         .node = index,
                         .chain = chains_.Add(now_)});
  }
}

void SimCollectives::ProgramNodeDone(const LocalEvent& event) {
  now_ = chains_.Take(event.chain);
  now_.Handle(timeline_.now());
  CompleteProgramNode(event.subject, event.node);
}

void SimCollectives::ProgramMessageDone(SimIndex stream, SimIndex node, const SimChain* chain) {
  now_ = ChainOf(streams_[stream], chain);
  CompleteProgramNode(stream, node);
}

void SimCollectives::CompleteProgramNode(SimIndex id, SimIndex index) {
  CollectiveStream& stream = streams_[id];
  stream.custom.waits[index] = ProgramState::kDone;
  if (--stream.custom.left == 0) return NextPhase(stream);
  for (const SimIndex child : stream.custom.rank->program->children[index]) {
    if (--stream.custom.waits[child] == 0) IssueProgramNode(stream, child);
  }
}

}  // namespace etude
