#include "src/synth/transformer_job.h"

#include <algorithm>
#include <utility>

#include "src/synth/work_builder.h"
#include "src/transform/astra_sim.h"

namespace etude {
namespace {

enum JobAxis : size_t { kTensorAxis, kContextAxis, kExpertAxis, kDataAxis, kStageAxis };

}  // namespace

Result<TransformerJob> TransformerJob::Make(const TransformerModel& model,
                                            const TransformerPlan& plan) {
  ETUDE_RETURN_IF_ERROR(CheckTransformerPlan(model, plan));
  return TransformerJob(model, plan);
}

TransformerJob::TransformerJob(const TransformerModel& model, const TransformerPlan& plan)
    : plan_(plan) {
  axes_[kTensorAxis].size = plan.layer.tensor;
  axes_[kContextAxis].size = plan.layer.context;
  axes_[kExpertAxis].size = plan.layer.expert;
  axes_[kDataAxis].size = plan.data / plan.layer.expert;
  axes_[kStageAxis].size = plan.pipeline.stages;
  for (size_t i = 1; i < kAxes; ++i) axes_[i].stride = axes_[i - 1].stride * axes_[i - 1].size;
  bool used[kParallelGroupCount] = {};
  for (int64_t stage = 0; stage < plan.pipeline.stages; ++stage) {
    programs_.push_back(StageProgram(model, plan, stage));
    for (const StageWork& work : programs_.back()) {
      if (work.collective != CollectiveType::kUnknown) used[static_cast<size_t>(work.group)] = true;
    }
  }
  int64_t next = 1;
  for (size_t i = 0; i < kParallelGroupCount; ++i) {
    if (!used[i]) continue;
    first_numbers_[i] = next;
    int64_t groups = 1;
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (!Spans(static_cast<ParallelGroup>(i), axis)) groups *= axes_[axis].size;
    }
    next += groups;
  }
}

bool TransformerJob::Spans(ParallelGroup group, size_t axis) {
  switch (group) {
    case ParallelGroup::kTensor: return axis == kTensorAxis;
    case ParallelGroup::kContext: return axis == kContextAxis;
    case ParallelGroup::kExpert: return axis == kExpertAxis;
    case ParallelGroup::kReplicas:
      return axis == kContextAxis || axis == kExpertAxis || axis == kDataAxis;
    case ParallelGroup::kExpertReplicas: return axis == kContextAxis || axis == kDataAxis;
    case ParallelGroup::kEnds: return axis == kStageAxis;
  }
  return false;
}

int64_t TransformerJob::GroupNumber(ParallelGroup group, int64_t rank) const {
  int64_t number = 0;
  for (size_t axis = kAxes; axis-- > 0;) {
    if (!Spans(group, axis)) number = number * axes_[axis].size + Coordinate(rank, axis);
  }
  return first_numbers_[static_cast<size_t>(group)] + number;
}

std::vector<int64_t> TransformerJob::Members(ParallelGroup group, int64_t rank) const {
  std::vector<int64_t> members = {rank};
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (!Spans(group, axis)) continue;
    std::vector<int64_t> more;
    const int64_t last = axes_[axis].size - 1;
    const int64_t step = group == ParallelGroup::kEnds ? last : 1;
    for (int64_t i = 0; i <= last; i += step) {
      const int64_t away = (i - Coordinate(rank, axis)) * axes_[axis].stride;
      for (const int64_t member : members) more.push_back(member + away);
    }
    members = std::move(more);
  }
  return members;
}

std::map<int64_t, std::vector<int64_t>> TransformerJob::Groups() const {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (size_t i = 0; i < kParallelGroupCount; ++i) {
    const auto group = static_cast<ParallelGroup>(i);
    if (!IsUsed(group)) continue;
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      bool is_first = true;
      for (size_t axis = 0; axis < kAxes; ++axis) {
        is_first = is_first && (!Spans(group, axis) || Coordinate(rank, axis) == 0);
      }
      if (is_first) groups[GroupNumber(group, rank)] = Members(group, rank);
    }
  }
  return groups;
}

template <typename Fill>
Result<Trace> TransformerJob::Build(int64_t stage, std::optional<int64_t> rank, Fill fill) const {
  WorkBuilder builder;
  TraceBuilder& trace = builder.trace();
  trace.info().rank = rank;
  trace.info().world_size = ranks();
  std::vector<NodeId> nodes;
  std::vector<NodeId> deps;
  for (const StageWork& work : program(stage)) {
    const bool collective = work.collective != CollectiveType::kUnknown;
    NodeKind kind = NodeKind::kCompute;
    if (collective) kind = NodeKind::kCollective;
    if (work.partner != 0) kind = work.sends ? NodeKind::kSend : NodeKind::kRecv;
    deps.clear();
    for (const size_t dep : work.data) deps.push_back(nodes[dep]);
    const NodeId node = builder.Add(kind, work.name, deps);
    for (const size_t dep : work.control) trace.AddDep(node, nodes[dep], DepKind::kControl);
    nodes.push_back(node);
    if (collective || work.partner != 0) {
      trace.SetComm(node, fill(work, trace));
    } else {
      AddAstraAttr(trace, node, "num_ops", chakra::ValueType::kInt64,
                   static_cast<uint64_t>(work.flops));
      AddAstraAttr(trace, node, "tensor_size", chakra::ValueType::kUint64,
                   static_cast<uint64_t>(work.memory.count));
    }
  }
  return builder.Finish();
}

Result<Trace> TransformerJob::TraceOf(int64_t rank) const {
  const int64_t stage = Coordinate(rank, kStageAxis);
  return Build(stage, rank, [&](const StageWork& work, TraceBuilder& trace) -> Comm {
    if (work.partner == 0) {
      return {.type = work.collective,
              .group = trace.Intern(std::to_string(GroupNumber(work.group, rank))),
              .bytes = work.bytes};
    }
    const int64_t peer = rank + (PartnerStage(stage, work) - stage) * axes_[kStageAxis].stride;
    return {.bytes = work.bytes,
            .src = work.sends ? rank : peer,
            .dst = work.sends ? peer : rank,
            .tag = work.tag};
  });
}

Result<Mesh> TransformerJob::MeshOf() const {
  constexpr const char* kNames[kAxes] = {"tp", "cp", "ep", "dp", "pp"};
  std::vector<MeshAxis> axes;
  for (size_t i = 0; i < kAxes; ++i) axes.push_back({.name = kNames[i], .size = axes_[i].size});
  return Mesh::Make(std::move(axes));
}

Result<GroupKind> TransformerJob::KindOf(ParallelGroup group) const {
  GroupKind kind;
  kind.first_name = first_numbers_[static_cast<size_t>(group)];
  if (group == ParallelGroup::kEnds && axes_[kStageAxis].size > 2) {
    for (int64_t rank = 0; rank < axes_[kStageAxis].stride; ++rank) {
      kind.listed.push_back(RankSet::Of(Members(group, rank)));
    }
    return kind;
  }
  kind.axes = 0;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (Spans(group, axis)) *kind.axes |= AxisSet{1} << axis;
  }
  return kind;
}

Result<RankClass> TransformerJob::ClassOf(int64_t stage, const std::vector<size_t>& kinds) const {
  RankClass one;
  one.states_rank = true;
  const int64_t size = axes_[kStageAxis].stride;
  ETUDE_ASSIGN_OR_RETURN(
      one.ranks, RankSet::OfBlocks({{.first = stage * size, .dims = {{.count = size}}}}, "stage"));
  std::vector<size_t> groups;  // of the class: ParallelGroup
  Result<Trace> program =
      Build(stage, std::nullopt, [&](const StageWork& work, TraceBuilder& trace) -> Comm {
        if (work.partner != 0) return {};
        const auto group = static_cast<size_t>(work.group);
        const auto found = std::ranges::find(groups, group);
        const auto number = static_cast<size_t>(found - groups.begin());
        if (found == groups.end()) {
          groups.push_back(group);
          one.groups.push_back({.kind = kinds[group]});
        }
        return {.group = trace.Intern(NameOfGroup(number))};
      });
  if (!program) return tl::unexpected<Error>(program.error());
  one.program = *std::move(program);
  return one;
}

// The stages run side by side, each until it waits for another one.
std::vector<CommEvent> TransformerJob::Events(const std::vector<size_t>& kinds) const {
  const auto stages = static_cast<size_t>(plan_.pipeline.stages);
  std::vector<CommEvent> events;
  std::vector<size_t> next(stages);
  std::map<std::pair<int64_t, int64_t>, size_t> sent;  // event by receiving stage and tag
  std::optional<CommPart> end;                         // that has come to what both ends do
  bool ends_met = false;
  // False: the stage has to wait.
  const auto communicate = [&](size_t stage, const StageWork& work) {
    const CommPart part{.rank_class = stage,
                        .node = NodeId::FromIndex(next[stage]),
                        .states_self = work.partner != 0};
    if (work.partner == 0) {
      CommEvent event{.type = work.collective,
                      .bytes = work.bytes,
                      .group = kinds[static_cast<size_t>(work.group)],
                      .parts = {part}};
      if (work.group == ParallelGroup::kEnds && !ends_met) {
        if (!end) end = part;
        if (end->rank_class == stage) return false;
        event.parts.push_back(*end);
        std::ranges::sort(event.parts, {}, &CommPart::rank_class);
        ends_met = true;
      } else if (work.group == ParallelGroup::kEnds) {
        return true;
      }
      events.push_back(std::move(event));
      return true;
    }
    const auto place = static_cast<int64_t>(stage);
    if (work.sends) {
      sent[{PartnerStage(place, work), work.tag}] = events.size();
      events.push_back({.is_message = true,
                        .bytes = work.bytes,
                        .tag = work.tag,
                        .route = work.partner > 0 ? size_t{0} : size_t{1},
                        .parts = {part}});
      return true;
    }
    const auto message = sent.find({place, work.tag});
    if (message == sent.end()) return false;
    events[message->second].parts.push_back(part);
    if (message->second + 1 < events.size()) {
      events[message->second].received_after = events.size() - 1;
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < stages; ++stage) {
      const std::vector<StageWork>& works = programs_[stage];
      for (; next[stage] < works.size(); ++next[stage]) {
        const StageWork& work = works[next[stage]];
        const bool computes = work.collective == CollectiveType::kUnknown && work.partner == 0;
        if (!computes && !communicate(stage, work)) break;
        moved = true;
      }
    }
  }
  return events;
}

Result<Job> TransformerJob::AsJob() const {
  Job job;
  ETUDE_ASSIGN_OR_RETURN(job.mesh, MeshOf());
  std::vector<size_t> kinds(kParallelGroupCount, CommEvent::kNone);
  for (size_t i = 0; i < kParallelGroupCount; ++i) {
    const auto group = static_cast<ParallelGroup>(i);
    if (!IsUsed(group)) continue;
    kinds[i] = job.group_kinds.size();
    ETUDE_ASSIGN_OR_RETURN(job.group_kinds.emplace_back(), KindOf(group));
  }
  if (plan_.pipeline.stages > 1) {
    job.routes = {{.shift = {0, 0, 0, 0, 1}}, {.shift = {0, 0, 0, 0, -1}}};
  }
  for (int64_t stage = 0; stage < plan_.pipeline.stages; ++stage) {
    ETUDE_ASSIGN_OR_RETURN(job.classes.emplace_back(), ClassOf(stage, kinds));
  }
  job.events = Events(kinds);
  ETUDE_RETURN_IF_ERROR(CheckJob(job));
  return job;
}

}  // namespace etude
