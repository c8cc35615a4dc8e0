#include "src/synth/transformer_job.h"

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

Result<Trace> TransformerJob::TraceOf(int64_t rank) const {
  WorkBuilder builder;
  TraceBuilder& trace = builder.trace();
  trace.info().rank = rank;
  trace.info().world_size = ranks();
  const int64_t stage = Coordinate(rank, kStageAxis);
  const std::vector<StageWork>& works = program(stage);
  std::vector<NodeId> nodes;
  std::vector<NodeId> deps;
  for (const StageWork& work : works) {
    const bool collective = work.collective != CollectiveType::kUnknown;
    NodeKind kind = NodeKind::kCompute;
    if (collective) kind = NodeKind::kCollective;
    if (work.partner != 0) kind = work.sends ? NodeKind::kSend : NodeKind::kRecv;
    deps.clear();
    for (const size_t dep : work.data) deps.push_back(nodes[dep]);
    const NodeId node = builder.Add(kind, work.name, deps);
    for (const size_t dep : work.control) trace.AddDep(node, nodes[dep], DepKind::kControl);
    nodes.push_back(node);
    if (collective) {
      trace.SetComm(node, {.type = work.collective,
                           .group = trace.Intern(std::to_string(GroupNumber(work.group, rank))),
                           .bytes = work.bytes});
    } else if (work.partner != 0) {
      const int64_t stages = plan_.pipeline.stages;
      const int64_t peer =
          rank + ((stage + work.partner + stages) % stages - stage) * axes_[kStageAxis].stride;
      trace.SetComm(node, {.bytes = work.bytes,
                           .src = work.sends ? rank : peer,
                           .dst = work.sends ? peer : rank,
                           .tag = work.tag});
    } else {
      AddAstraAttr(trace, node, "num_ops", chakra::ValueType::kInt64,
                   static_cast<uint64_t>(work.flops));
      AddAstraAttr(trace, node, "tensor_size", chakra::ValueType::kUint64,
                   static_cast<uint64_t>(work.memory.count));
    }
  }
  return builder.Finish();
}

}  // namespace etude
