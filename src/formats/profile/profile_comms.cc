#include "src/formats/profile/profile_comms.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/comm_kernels.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/run/calls/launch.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns the facts that both have.
Comm InBoth(Comm one, const Comm& other) {
  const auto keep = [](auto& fact, const auto& same) {
    if (fact != same) fact = std::remove_cvref_t<decltype(fact)>();
  };
  keep(one.type, other.type);
  keep(one.name, other.name);
  keep(one.group, other.group);
  keep(one.dtype, other.dtype);
  keep(one.bytes, other.bytes);
  keep(one.in_elements, other.in_elements);
  keep(one.out_elements, other.out_elements);
  keep(one.in_split, other.in_split);
  keep(one.out_split, other.out_split);
  keep(one.root, other.root);
  keep(one.src, other.src);
  keep(one.dst, other.dst);
  keep(one.tag, other.tag);
  keep(one.group_size, other.group_size);
  keep(one.priority, other.priority);
  return one;
}

// Returns the text of an argument that becomes an extra, and "" without one.
std::string_view ExtraNamed(const ProfilerEvent& event, std::string_view key) {
  const auto found = std::ranges::find_if(event.extras, [&](const ProfilerEvent::Extra& extra) {
    return extra.is_arg && extra.key == key;
  });
  return found == event.extras.end() ? std::string_view() : found->text;
}

}  // namespace

std::optional<Comm> ProfileComms::Settle(NodeId node, NodeRow& row, ProfilerEvent& event) {
  CommFacts& facts = event.comm;
  const bool is_kernel = row.kind == NodeKind::kKernel && IsCommKernel(event.name);
  const ProfileCategory category{.kind = row.kind, .place = row.place};
  row.kind = event.kind.value_or(KindOfEvent(category, event.name, facts.name));
  const std::string_view label =
      row.place == Place::kHost && !facts.any && !event.kind ? CommOfLabel(event.name) : "";
  if (!label.empty()) {
    facts.name = label;
    SetTensors(facts, ExtraNamed(event, "Input Dims"), ExtraNamed(event, "Input type"));
    labels_.emplace_back(node, MakeComm(builder_, facts));
    return std::nullopt;
  }
  if (!facts.any && !is_kernel) return std::nullopt;
  AddGroupOf(builder_, facts);
  Comm comm = MakeComm(builder_, facts);
  if (comm.type == CollectiveType::kUnknown && facts.name.empty()) {
    comm.type = CollectiveOfKernel(event.name);
  }
  if (row.place == Place::kHost) calls_.insert_or_assign(node, comm);
  const bool is_silent = is_kernel && !comm.bytes && !comm.in_elements;
  if (is_silent) silent_.insert_or_assign(node, comm);
  if (is_kernel && !is_silent) silent_.erase(node);
  return comm;
}

void ProfileComms::Finish(const std::vector<NodeId>& parent_of) {
  SettleLabels(parent_of);
  FillFromCalls(parent_of);
}

// Makes backend labels communications if there is no record_param_comms. If record_param_comms
// lacks the name, the label gives it.
void ProfileComms::SettleLabels(const std::vector<NodeId>& parent_of) {
  const StringId recorded = builder_.Intern(kRecordParamComms);
  for (const auto& [label, comm] : labels_) {
    NodeId node = parent_of[label.index()];
    const bool is_recorded = node && builder_.name(node) == recorded;
    if (is_recorded && builder_.kind(node) != NodeKind::kOperator) continue;
    if (!is_recorded) node = label;
    builder_.SetKind(node, KindOfCommunication(builder_.text(comm.name)));
    builder_.SetComm(node, comm);
    calls_.insert_or_assign(node, comm);
  }
}

// Fills kernels without type and size from the call around their launch.
void ProfileComms::FillFromCalls(const std::vector<NodeId>& parent_of) {
  if (silent_.empty() || calls_.empty()) return;
  Launches launches;
  for (size_t i = 0; i < builder_.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    if (builder_.kind(node) != NodeKind::kRuntime) continue;
    const int64_t correlation = builder_.correlation(node).value_or(0);
    if (correlation > 0) launches.emplace(correlation, node);
  }
  std::vector<NodeId> lost;
  for (const auto& [kernel, own] : silent_) {
    const auto launch = launches.find(builder_.correlation(kernel).value_or(0));
    if (launch == launches.end()) {
      lost.push_back(kernel);
      continue;
    }
    NodeId above = parent_of[launch->second.index()];
    while (above && !calls_.contains(above)) above = parent_of[above.index()];
    if (above) FillFrom(above, kernel, own);
  }
  FillByOrder(lost, launches, parent_of);
}

// Returns the outermost call around a node, or the node itself, that represents a communication;
// otherwise kNone.
NodeId ProfileComms::CallAround(NodeId node, const std::vector<NodeId>& parent_of) const {
  NodeId call;
  for (; node; node = parent_of[node.index()]) {
    if (calls_.contains(node) && IsCommunication(builder_.kind(node))) call = node;
  }
  return call;
}

void ProfileComms::FillFrom(NodeId call_node, NodeId kernel, const Comm& own) {
  if (builder_.kind(kernel) == NodeKind::kCollective) {
    builder_.SetKind(kernel, builder_.kind(call_node));
  }
  Comm call = calls_.at(call_node);
  call.name = StringId::None();  // a host trace has the full one: "all_to_allv"
  builder_.SetComm(kernel, FilledFrom(own, call));
}

std::vector<StrayKernel> ProfileComms::StrayKernels(const std::vector<NodeId>& kernels) const {
  std::vector<StrayKernel> stray;
  for (const NodeId kernel : kernels) {
    const auto start = builder_.start(kernel);
    if (!start) continue;
    stray.push_back({.node = kernel,
                     .stream = builder_.lane_id(kernel),
                     .start = *start,
                     .end = *start + builder_.duration(kernel).value_or(Nanos{}),
                     .type = silent_.at(kernel).type});
  }
  return stray;
}

// Assigns kernels whose correlation leads to no launch to the calls without a kernel, in order. In
// ROCm 6.1 all RCCL kernels have the correlation 0.
void ProfileComms::FillByOrder(const std::vector<NodeId>& kernels, const Launches& launches,
                               const std::vector<NodeId>& parent_of) {
  if (kernels.empty()) return;
  std::unordered_set<int64_t> ran;
  std::unordered_set<NodeId> served;
  for (size_t i = 0; i < builder_.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    if (builder_.place(node) != Place::kDevice) continue;
    const int64_t correlation = builder_.correlation(node).value_or(0);
    if (correlation <= 0) continue;
    ran.insert(correlation);
    const auto launch = launches.find(correlation);
    if (launch == launches.end() || !IsCommunication(builder_.kind(node))) continue;
    served.insert(CallAround(launch->second, parent_of));
  }
  std::vector<StrayKernel> stray_kernels = StrayKernels(kernels);
  std::vector<StrayCall> stray_calls;
  for (const auto& [call, comm] : calls_) {
    const auto start = builder_.start(call);
    if (!start || served.contains(call) || CallAround(call, parent_of) != call) continue;
    stray_calls.push_back({.node = call, .group = comm.group, .start = *start, .type = comm.type});
  }
  // The launch in each call whose work is not in the trace; kNone if there are several.
  std::unordered_map<NodeId, NodeId> launch_in;
  for (const auto& [correlation, launch] : launches) {
    if (ran.contains(correlation)) continue;
    if (!LaunchesWork(builder_.text(builder_.name(launch)))) continue;
    const auto [at, is_new] = launch_in.emplace(CallAround(launch, parent_of), launch);
    if (!is_new) at->second = NodeId::None();
  }
  std::unordered_set<NodeId> paired;
  for (const OrderedPair& pair : PairByOrder(stray_kernels, stray_calls)) {
    paired.insert(pair.kernel);
    paired.insert(pair.call);
    FillFrom(pair.call, pair.kernel, silent_.at(pair.kernel));
    builder_.stats().Count(Stat::kCallByOrder);
    const auto launch = launch_in.find(pair.call);
    if (launch == launch_in.end() || !launch->second) continue;
    NodeRow ids;
    ids.correlation = builder_.correlation(launch->second);
    builder_.SetIds(pair.kernel, ids);
  }
  std::erase_if(stray_kernels, [&](const auto& one) { return paired.contains(one.node); });
  std::erase_if(stray_calls, [&](const auto& one) { return paired.contains(one.node); });
  FillFromAll(stray_kernels, stray_calls);
}

// Sets the facts on which all calls agree. They hold for a kernel whichever call it belongs to.
void ProfileComms::FillFromAll(const std::vector<StrayKernel>& kernels,
                               const std::vector<StrayCall>& calls) {
  if (kernels.empty() || kernels.size() > calls.size()) return;
  Comm common = calls_.at(calls.front().node);
  NodeKind kind = builder_.kind(calls.front().node);
  for (const StrayCall& call : calls) {
    common = InBoth(common, calls_.at(call.node));
    if (builder_.kind(call.node) != kind) kind = NodeKind::kCollective;
  }
  common.name = StringId::None();
  if (common == Comm()) return;
  for (const StrayKernel& kernel : kernels) {
    if (kernel.type != CollectiveType::kUnknown && common.type != CollectiveType::kUnknown &&
        kernel.type != common.type) {
      continue;
    }
    if (builder_.kind(kernel.node) == NodeKind::kCollective) builder_.SetKind(kernel.node, kind);
    builder_.SetComm(kernel.node, FilledFrom(silent_.at(kernel.node), common));
    builder_.stats().Count(Stat::kCallByOrder);
  }
}

}  // namespace etude
