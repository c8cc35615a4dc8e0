#include "src/formats/profile/profile_builder.h"

#include <algorithm>
#include <utility>

#include "src/formats/json/json_text.h"
#include "src/formats/profile/event_arguments.h"
#include "src/formats/profile/impossible_times.h"
#include "src/formats/profile/pid_of_rank.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

NodeRow IdsOf(const ProfilerEvent& event) {
  NodeRow row;
  row.rf_id = event.rf_id;
  row.seq_id = event.sequence;
  row.fw_tid = event.forward_thread;
  row.correlation = event.correlation;
  row.external_id = event.external_id;
  return row;
}

void KeepUnless(ProfilerEvent& event, const ProfilerEvent::Name& name, std::string_view key,
                std::string_view expected) {
  if (!name.is_known() || name.text == expected) return;
  event.extras.push_back({.key = key, .text = name.raw, .is_arg = false});
}

// Keeps process and thread of a device event as extras if its lane does not contain them.
void KeepNamesUnlessIn(const Lane& lane, ProfilerEvent& event) {
  KeepUnless(event, event.process, "pid", std::to_string(lane.device));
  KeepUnless(event, event.thread, "tid", std::to_string(lane.stream));
}

// Keeps the event's device and stream as extras if its lane, like those of host events, does not
// contain them.
void KeepUnlessIn(const Lane& lane, ProfilerEvent& event) {
  if (event.device && event.device != lane.device) {
    event.extras.push_back({.key = "device", .text = event.raw_device});
  }
  if (event.stream && event.stream != lane.stream) {
    event.extras.push_back({.key = event.stream_key, .text = event.raw_stream});
  }
}

// Returns the process id as the process wrote it, without the rank that merging profiles adds.
std::string_view OwnPid(const ProfilerEvent& event) {
  const std::optional<PidOfRank> of_rank = ReadPidOfRank(event.process.text);
  return of_rank ? of_rank->pid : event.process.text;
}

}  // namespace

bool ProfileBuilder::SkipsSum(const ProfilerEvent& event) {
  if (!event.category.empty() || !event.process.is_known()) return false;
  if (!processes_.HasSums(builder_.Intern(event.process.text))) return false;
  builder_.stats().Count(Stat::kSkippedEvent);
  return true;
}

void ProfileBuilder::TakeDuration(ProfilerEvent& event) {
  const bool is_known = event.duration && !event.is_unfinished;
  if (is_known) return;
  if (event.duration) {
    event.extras.push_back({.key = "dur", .text = event.raw_duration, .is_arg = false});
  }
  builder_.stats().Count(Stat::kUnknownDuration);
}

ProfileBuilder::Spot ProfileBuilder::Locate(ProfilerEvent& event) {
  Spot spot{.category = FindProfileCategory(event.category, event.name)};
  spot.place = event.place.value_or(spot.category.place);
  spot.name = builder_.Intern(event.name);
  spot.lane = LaneOf(event, spot.place);
  spot.lane_id = builder_.InternLane(spot.lane);
  if (spot.place == Place::kDevice) KeepNamesUnlessIn(spot.lane, event);
  KeepUnlessIn(spot.lane, event);
  return spot;
}

void ProfileBuilder::Add(ProfilerEvent& event, const Spot& spot, uint64_t index) {
  const auto duration = event.is_unfinished ? std::nullopt : event.duration;
  AddNode(event, spot, index, duration, event.duration);
}

void ProfileBuilder::AddMemoryEvent(ProfilerEvent& event, const Spot& spot, uint64_t index) {
  const Added added = AddNode(event, spot, index, std::nullopt, std::nullopt);
  builder_.SetKind(added.node, NodeKind::kMetadata);
}

void ProfileBuilder::AddBegin(ProfilerEvent& event, const Spot& spot, uint64_t index) {
  const Added added = AddNode(event, spot, index, std::nullopt, std::nullopt);
  OpenOnThread(event).push_back({.node = added.node,
                                 .kind = spot.category.kind,
                                 .place = spot.category.place,
                                 .lane = LaneOf(event, spot.category.place),
                                 .start = *event.start,
                                 .timed = added.timed,
                                 .facts = FactsToComplete(event)});
}

bool ProfileBuilder::LocateEnd(ProfilerEvent& event) {
  ending_ = &OpenOnThread(event);
  if (ending_->empty()) return false;
  KeepUnlessIn(ending_->back().lane, event);
  return true;
}

void ProfileBuilder::AddEnd(ProfilerEvent& event, Nanos end) {
  InternExtras(event);
  const Open open = std::move(ending_->back());
  ending_->pop_back();
  builder_.SetIds(open.node, IdsOf(event));
  if (event.comm.any) CompleteComm(open, event);
  builder_.SetTimes(open.node, std::nullopt, end - open.start, std::nullopt);
  if (open.timed != kNotTimed && end >= open.start) {
    timed_[open.timed].end = end;
    timed_[open.timed].has_end = true;
  }
  AddExtras(open.node);
}

// Returns a copy of the event's facts that outlives its text, and null if there are none.
std::unique_ptr<CommFacts> ProfileBuilder::FactsToComplete(const ProfilerEvent& event) {
  if (!event.comm.any) return nullptr;
  auto facts = std::make_unique<CommFacts>(event.comm);
  for (std::string_view* text : {&facts->name, &facts->group, &facts->group_description}) {
    *text = builder_.text(builder_.Intern(*text));
  }
  return facts;
}

// Adds the facts of the beginning to the communication facts of an end.
void ProfileBuilder::CompleteComm(const Open& open, ProfilerEvent& event) {
  if (open.facts != nullptr) FillGaps(event.comm, *open.facts);
  event.name = builder_.text(builder_.name(open.node));
  NodeRow row{.kind = open.kind, .place = open.place};
  const std::optional<Comm> comm = comms_.Settle(open.node, row, event);
  builder_.SetKind(open.node, row.kind);
  if (comm) builder_.SetComm(open.node, *comm);
}

ProfileBuilder::Added ProfileBuilder::AddNode(ProfilerEvent& event, const Spot& spot,
                                              uint64_t index, std::optional<Nanos> duration,
                                              std::optional<Nanos> seen) {
  NodeRow row = IdsOf(event);
  row.source_id = index;
  row.kind = spot.category.kind;
  row.place = spot.place;
  row.scope = spot.category.scope;
  row.name = spot.name;
  row.lane = spot.lane_id;
  row.start = event.start;
  row.duration = duration;
  InternExtras(event);
  const std::optional<Comm> comm =
      comms_.Settle(NodeId::FromIndex(builder_.node_count()), row, event);
  if (spot.category.name != DefaultProfileCategory(row.kind, row.place)) {
    extras_.push_back({.key = builder_.Intern(kCategoryExtraKey),
                       .text = builder_.Intern(JsonString(spot.category.name))});
  }
  const NodeId node = builder_.AddNode(row);
  merged_.Add(builder_, event.process.text, event.rank);
  if (comm) builder_.SetComm(node, *comm);
  if (event.category.empty() && row.kind == NodeKind::kUnknown) AddUncategorised(event, node);
  AddExtras(node);
  if (row.place == Place::kDevice) return {.node = node, .timed = kNotTimed};
  timed_.push_back({.node = node,
                    .lane = row.lane,
                    .start = *row.start,
                    .end = *row.start + seen.value_or(Nanos{0}),
                    .has_end = seen && seen->count >= 0});
  return {.node = node, .timed = timed_.size() - 1};
}

// Returns process and thread, for any category of the event.
Lane ProfileBuilder::ThreadOf(const ProfilerEvent& event) {
  Lane lane;
  if (event.process.is_known()) lane.process = builder_.Intern(event.process.text);
  if (event.thread.is_known()) lane.thread = builder_.Intern(event.thread.text);
  return lane;
}

// Returns the lane. Host events run on a thread of a process, and device events on a stream of a
// device, which profilers also write as process and thread.
Lane ProfileBuilder::LaneOf(const ProfilerEvent& event, Place place) {
  if (place != Place::kDevice) return ThreadOf(event);
  Lane lane;
  auto device = event.device ? event.device : event.agent;
  if (!device) device = SmallNumber(OwnPid(event));
  auto stream = event.stream;
  if (!stream && !event.on_no_stream) stream = SmallNumber(event.thread.text);
  if (!stream) stream = event.queue;
  lane.device = device.value_or(-1);
  lane.stream = stream.value_or(-1);
  return lane;
}

// Returns the open begins on the event's thread. Ends match begins by thread only.
std::vector<ProfileBuilder::Open>& ProfileBuilder::OpenOnThread(const ProfilerEvent& event) {
  const size_t thread = threads_.Intern(ThreadOf(event)).index();
  if (open_.size() <= thread) open_.resize(thread + 1);
  return open_[thread];
}

void ProfileBuilder::InternExtras(const ProfilerEvent& event) {
  extras_.clear();
  for (const ProfilerEvent::Extra& extra : event.extras) {
    StringId key;
    if (extra.is_arg) {
      key = builder_.Intern(extra.key);
    } else {
      key_.assign(kEventExtraPrefix);
      key_ += extra.key;
      key = builder_.Intern(key_);
    }
    extras_.push_back({.key = key, .text = builder_.Intern(extra.text)});
  }
}

void ProfileBuilder::AddExtras(NodeId node) {
  for (const Extra& extra : extras_) builder_.AddExtra(node, extra);
}

void ProfileBuilder::AddUncategorised(const ProfilerEvent& event, NodeId node) {
  UncategorisedEvent uncategorised{.node = node,
                                   .process = {},
                                   .thread = {},
                                   .device = event.device,
                                   .stream = event.stream,
                                   .task_type = {},
                                   .correlation = event.xla_correlation};
  if (event.process.is_known()) uncategorised.process = builder_.Intern(event.process.text);
  if (event.thread.is_known()) uncategorised.thread = builder_.Intern(event.thread.text);
  if (!event.task_type.empty()) uncategorised.task_type = builder_.Intern(event.task_type);
  processes_.Add(uncategorised);
}

void ProfileBuilder::AddArrow(const ProfilerEvent& event, std::string_view id, bool begins) {
  if (arrows_.size() >= max_arrows_) return;
  const StringId id_text = builder_.Intern(id);
  arrows_.Add({.id = id_text,
               .lane = builder_.InternLane(ThreadOf(event)),
               .at = *event.start,
               .begins = begins});
}

void ProfileBuilder::NameProcess(const ProfilerEvent& event, std::string_view name) {
  const StringId process = builder_.Intern(event.process.text);
  processes_.NameProcess(process, builder_.Intern(name));
}

void ProfileBuilder::LabelProcess(const ProfilerEvent& event, std::string_view label) {
  const StringId process = builder_.Intern(event.process.text);
  processes_.LabelProcess(process, builder_.Intern(label));
}

void ProfileBuilder::NameThread(const ProfilerEvent& event, std::string_view name) {
  const StringId process = builder_.Intern(event.process.text);
  const StringId name_text = builder_.Intern(name);
  processes_.NameThread(process, builder_.Intern(event.thread.text), name_text);
}

void ProfileBuilder::Finish() {
  for (const auto& stack : open_) {
    if (!stack.empty()) builder_.stats().Count(Stat::kUnknownDuration, stack.size());
  }
  processes_.Settle();
  ClearImpossibleTimes();
  merged_.Separate(builder_);
  SetParents();
}

// Makes impossible times unknown, and keeps the file's values as extras.
void ProfileBuilder::ClearImpossibleTimes() {
  const std::vector<NodeId> impossible = FindImpossibleTimes(builder_);
  if (impossible.empty() && processes_.events().empty()) return;
  const StringId ts = builder_.Intern(std::string(kEventExtraPrefix) + "ts");
  const StringId dur = builder_.Intern(std::string(kEventExtraPrefix) + "dur");
  for (const NodeId node : impossible) {
    const auto keep = [&](StringId key, std::optional<Nanos> time) {
      if (!time) return;
      builder_.AddExtra(node, {.key = key, .text = builder_.Intern(MicrosText(*time))});
    };
    keep(ts, builder_.start(node));
    keep(dur, builder_.duration(node));
    builder_.ClearTimes(node);
    builder_.stats().Count(Stat::kUnknownTime);
  }
  std::erase_if(timed_, [&](const TimedNode& timed) {
    return builder_.place(timed.node) == Place::kDevice || !builder_.start(timed.node);
  });
}

// Marks autograd nodes, because profiles do not mark them.
void ProfileBuilder::SetAutogradNode(NodeId node, NodeId parent) {
  const auto name_of = [&](NodeId of) { return builder_.text(builder_.name(of)); };
  if (builder_.kind(node) != NodeKind::kOperator) return;
  if (!IsAutogradNode(name_of(node), name_of(parent))) return;
  builder_.SetKind(node, NodeKind::kLabel);
  builder_.SetScope(node, kBackwardScope);
  builder_.AddExtra(node, {.key = builder_.Intern(kCategoryExtraKey),
                           .text = builder_.Intern(JsonString("cpu_op"))});
}

void ProfileBuilder::SetParents() {
  const size_t nodes = builder_.node_count();
  std::vector<NodeId> parent_of(comms_.needs_parents() ? nodes : 0);
  for (TimedNode& timed : timed_) {
    if (IsHostThreadLabel(builder_.text(builder_.name(timed.node)))) timed.has_end = false;
  }
  arrows_.AddTimed(nodes, timed_);
  std::vector<NodeId> begins_in(arrows_.size());
  for (const Nesting& nesting : NestByTime(std::move(timed_))) {
    if (nesting.node.index() >= nodes) {
      begins_in[nesting.node.index() - nodes] = nesting.parent;
      continue;
    }
    builder_.SetParent(nesting.node, nesting.parent);
    SetAutogradNode(nesting.node, nesting.parent);
    if (!parent_of.empty()) parent_of[nesting.node.index()] = nesting.parent;
  }
  arrows_.SetParents(begins_in, processes_.events(), builder_);
  comms_.Finish(parent_of);
}

}  // namespace etude
