#include "src/torch/group/comm_calls.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/report/text/format.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns nullopt on overflow.
std::optional<int64_t> SumOf(const Trace& trace, std::span<const DataFlow::Use> uses) {
  int64_t sum = 0;
  for (const DataFlow::Use& use : uses) {
    const TensorUse& tensor = trace.tensor(use.tensor);
    int64_t bytes = 0;
    if (__builtin_mul_overflow(tensor.numel, tensor.element_bytes, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum)) {
      return std::nullopt;
    }
  }
  return sum;
}

// Returns whether inputs and outputs are different memory, as in SizeOf.
bool HasOutputs(CollectiveType type) {
  return type == CollectiveType::kAllGather || type == CollectiveType::kReduceScatter ||
         type == CollectiveType::kAllToAll;
}

// Returns the size of all tensors that the operator takes; ranks agree on it if sizes have to be
// equal. Functional collectives return outputs that others take as arguments.
std::optional<Bytes> SizeOfTensors(const ReplayedStep& step, NodeId node, const CommCall& call) {
  const auto taken = SumOf(step.trace(), step.flow().inputs(node));
  const bool returns = call.name.starts_with("_c10d_functional") && HasOutputs(call.type);
  const auto made = returns ? SumOf(step.trace(), step.flow().outputs(node)) : 0;
  int64_t sum = 0;
  if (!taken || !made || __builtin_add_overflow(*taken, *made, &sum)) return std::nullopt;
  return Bytes{sum};
}

}  // namespace

CommLog CallsOf(const ReplayedStep& step) {
  CommLog log;
  const RankGroup* group = step.options().group;
  if (group == nullptr) return log;
  log.rank = group->rank();
  log.world_size = group->size();
  std::vector<uint64_t> next;
  for (const PlannedOp& op : step.plan().ops) {
    const BoundOperator& bound = step.bound(op.node);
    // Waiting for a functional collective is not a call on a group.
    if (!bound.communicates()) continue;
    const BoundOperator::Channel& channel = bound.channel();
    const auto known = std::ranges::find(log.groups, channel.group, &CommLog::Group::name);
    const auto in = static_cast<size_t>(known - log.groups.begin());
    if (known == log.groups.end()) {
      log.groups.push_back({.name = channel.group, .ranks = group->RanksOf(channel.group)});
      std::ranges::sort(log.groups.back().ranks);
      next.push_back(0);
    }
    CommCall& call = log.calls.emplace_back();
    call.name = bound.schema().name();
    call.group = in;
    call.node = step.trace().source_id(op.node);
    call.kind = channel.kind;
    if (channel.kind == NodeKind::kCollective) {
      call.type = CollectiveFromName(call.name).value_or(CollectiveType::kUnknown);
      call.index = next[in]++;
      call.uneven = call.type == CollectiveType::kAllToAll;
    } else {
      call.peer = channel.peer;
      call.tag = channel.tag;
    }
    call.bytes = SizeOfTensors(step, op.node, call);
  }
  return log;
}

std::string SkippedCalls(const ReplayedStep& step) {
  const Trace& trace = step.trace();
  const OperatorSelection::Skipped* first = nullptr;
  int64_t count = 0;
  for (const OperatorSelection::Skipped& one : step.selection().skipped()) {
    if (!IsCommOperator(trace.name(one.node))) continue;
    if (first == nullptr) first = &one;
    ++count;
  }
  if (first == nullptr) return "";
  return fmt::format("{}, first {} (node {}): {}", FormatCount(count, "communication"),
                     trace.name(first->node), trace.source_id(first->node), first->reason);
}

CommSize SizeOf(const CommLog& log, const CommCall& call) {
  const auto ranks = static_cast<int64_t>(log.groups[call.group].ranks.size());
  const int64_t all = call.bytes.value_or(Bytes{}).count;
  CommSize size{.kind = call.kind, .type = call.type, .bytes = Bytes{all}, .ranks = ranks};
  // Derives this rank's input from the total of inputs and outputs.
  switch (call.type) {
    case CollectiveType::kAllGather: size.bytes = Bytes{all / (ranks + 1)}; break;
    case CollectiveType::kReduceScatter: size.bytes = Bytes{all / (ranks + 1) * ranks}; break;
    case CollectiveType::kAllToAll: size.bytes = Bytes{all / 2}; break;
    default: break;
  }
  return size;
}

}  // namespace etude
