#include "src/torch/group/collective_arguments.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/trace/words/distributed_value.h"

namespace etude {
namespace {

constexpr std::string_view kGroupClass = "__torch__.torch.classes.c10d.ProcessGroup";
constexpr std::string_view kReductionClass = "__torch__.torch.classes.c10d.ReduceOp";
constexpr std::string_view kGroupNameArgument = "group_name";

std::optional<std::string_view> TextOf(const Trace& trace, const Value* value, ValueKind kind) {
  if (value == nullptr || value->kind != kind) return std::nullopt;
  return trace.text(value->as_text());
}

// Returns the trace's name for the group of a collective.
std::optional<std::string> GroupName(const RecordedStep& step, NodeId node, const Value* recorded) {
  const Trace& trace = step.trace();
  if (const auto name = TextOf(trace, recorded, ValueKind::kString)) return std::string(*name);
  if (const auto text = TextOf(trace, recorded, ValueKind::kOpaque)) {
    if (const auto name = ProcessGroupNameIn(*text)) return std::string(*name);
  }
  const uint32_t begin = step.position(node);
  for (uint32_t i = begin; i <= step.last_inside(begin); ++i) {
    const Comm* comm = trace.comm(step.nodes()[i]);
    if (comm != nullptr && comm->group) return std::string(trace.text(comm->group));
  }
  return std::nullopt;
}

std::vector<int64_t> AllRanks(const RankGroup& ranks) {
  std::vector<int64_t> all(static_cast<size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Returns the ranks of a group in the job, or nullopt. A group without a rank list that has the
// job's size contains all ranks.
std::optional<std::vector<int64_t>> RanksOf(const Trace& trace, const ProcessGroup& group,
                                            const RankGroup& ranks) {
  const auto listed = trace.ints(group.ranks);
  if (!listed.empty()) return std::vector<int64_t>(listed.begin(), listed.end());
  if (group.size == ranks.size() || !group.ranks.is_none()) return AllRanks(ranks);
  return std::nullopt;
}

Result<JobGroup> Made(std::string name, std::vector<int64_t> members, RankGroup& ranks) {
  ETUDE_ASSIGN_OR_RETURN(c10::IValue value, ranks.Group(name, members));
  return JobGroup{std::move(value), std::move(name), std::move(members)};
}

// Returns the job's only group, for a trace that does not record the groups of its collectives.
Result<JobGroup> OnlyGroup(const Trace& trace, RankGroup& ranks) {
  for (const ProcessGroup& group : trace.process_groups()) {
    if (trace.GroupSize(group).value_or(ranks.size()) == ranks.size()) continue;
    return Unavailable(
        "the trace lacks the process group of this call, and the job has several; record with the "
        "native recorder");
  }
  return Made("", AllRanks(ranks), ranks);
}

bool DividesInside(const Trace& trace, NodeId node) {
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (trace.name(at) == "aten::div_") return true;
    const auto inside = trace.children(at);
    open.insert(open.end(), inside.begin(), inside.end());
  }
  return false;
}

}  // namespace

CollectiveRole RoleOf(const c10::Argument& argument) {
  const c10::Type& type = *argument.type();
  // A text; in later versions of torch any type, as it may be the group itself.
  if (argument.name() == kGroupNameArgument &&
      (type.kind() == c10::TypeKind::StringType || type.kind() == c10::TypeKind::AnyType)) {
    return CollectiveRole::kGroupName;
  }
  if (type.kind() != c10::TypeKind::ClassType) return CollectiveRole::kNone;
  if (type.annotation_str() == kGroupClass) return CollectiveRole::kGroup;
  return type.annotation_str() == kReductionClass ? CollectiveRole::kReduction
                                                  : CollectiveRole::kNone;
}

Result<JobGroup> GroupOf(const RecordedStep& step, NodeId node, const Value* recorded,
                         RankGroup& ranks) {
  const Trace& trace = step.trace();
  const std::optional<std::string> name = GroupName(step, node, recorded);
  if (!name) return OnlyGroup(trace, ranks);
  const auto groups = trace.process_groups();
  const auto group = std::ranges::find_if(
      groups, [&](const ProcessGroup& one) { return trace.text(one.name) == *name; });
  const auto members = group == groups.end() ? std::nullopt : RanksOf(trace, *group, ranks);
  if (!members) {
    return Unavailable("the trace lacks the ranks of process group '" + *name + "'");
  }
  return Made(*name, *members, ranks);
}

Result<c10::IValue> ReductionOf(const Trace& trace, NodeId node, const Value* recorded,
                                int& assumed) {
  constexpr uint8_t kSum = 0;
  constexpr uint8_t kAverage = 1;
  constexpr std::string_view kWithFactor = "PREMUL_SUM";
  const auto text = TextOf(trace, recorded, ValueKind::kOpaque);
  const auto name = text ? ReductionNameIn(*text) : std::nullopt;
  if (!name) {
    ++assumed;
    return MakeReduction(DividesInside(trace, node) ? kAverage : kSum);
  }
  if (*name == kWithFactor)
    return Unavailable("reduction PREMUL_SUM: its factor is missing in the trace");
  const std::optional<uint8_t> number = ReductionNumber(*name);
  if (!number) return Unavailable("reduction " + std::string(*name) + " is unknown");
  return MakeReduction(*number);
}

}  // namespace etude
