#include "src/analysis/compare/replay_match.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/run/step/tensor_shape.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using Key = std::pair<std::string, std::string>;  // operator, inputs

// Position of an operator that called no other, and its topmost operator.
struct Leaf {
  uint32_t position;
  uint32_t top;
};

std::vector<Leaf> Leaves(const RecordedStep& step) {
  const auto count = static_cast<uint32_t>(step.nodes().size());
  std::vector<bool> called(count);
  std::vector<uint32_t> top(count, RecordedStep::kNowhere);
  for (uint32_t i = 0; i < count; ++i) {
    const NodeId around = step.enclosing_operator(i);
    const bool is_operator = step.is_operator(i);
    const uint32_t outer = around ? step.position(around) : RecordedStep::kNowhere;
    if (around) {
      top[i] = top[outer];
      if (is_operator) called[outer] = true;
    } else if (is_operator) {
      top[i] = i;
    }
  }
  std::vector<Leaf> leaves;
  for (uint32_t i = 0; i < count; ++i) {
    if (!called[i] && step.is_operator(i)) leaves.push_back({i, top[i]});
  }
  return leaves;
}

// Returns true if all tensors among the inputs have strides.
bool SaysStrides(const RecordedStep& step, std::span<const Leaf> leaves) {
  bool says = true;
  const auto look = [&](TensorId tensor) {
    const TensorUse& use = step.trace().tensor(tensor);
    if (!IsUndefined(step.trace(), use) && use.numel > 1 && !use.strides) says = false;
  };
  for (const Leaf& leaf : leaves) {
    ForEachTensor(step.trace(), step.trace().inputs(step.nodes()[leaf.position]), look);
  }
  return says;
}

std::string Numbers(std::span<const int64_t> numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) {
    if (text.size() > 1) text += ',';
    text += std::to_string(number);
  }
  return text + "]";
}

// Strides matter only in dimensions with more than one element.
bool LiesContiguously(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    if (__builtin_mul_overflow(expected, sizes[i], &expected)) return false;
  }
  return true;
}

std::string FormOf(const Trace& trace, const TensorUse& use, bool with_strides) {
  if (IsUndefined(trace, use)) return "none";
  std::string text(Name(DTypeOf(trace, use)));
  if (!use.shape) return text;
  const auto sizes = trace.ints(use.shape);
  text += Numbers(sizes);
  if (!with_strides || !use.strides) return text;
  const auto strides = trace.ints(use.strides);
  if (strides.size() != sizes.size() || LiesContiguously(sizes, strides)) return text;
  std::vector<int64_t> shown(strides.begin(), strides.end());
  for (size_t i = 0; i < shown.size(); ++i) {
    if (sizes[i] == 1) shown[i] = 1;
  }
  return text + ":" + Numbers(shown);
}

Key KeyOf(const RecordedStep& step, uint32_t position, bool with_strides) {
  const Trace& trace = step.trace();
  const NodeId node = step.nodes()[position];
  std::string inputs;
  const auto add = [&](TensorId tensor) {
    if (!inputs.empty()) inputs += ", ";
    inputs += FormOf(trace, trace.tensor(tensor), with_strides);
  };
  ForEachTensor(trace, trace.inputs(node), add);
  return {std::string(OperatorNameOf(trace, node)), std::move(inputs)};
}

std::vector<KernelCount> Rows(const std::map<Key, int64_t>& counts) {
  std::vector<KernelCount> rows;
  for (const auto& [key, count] : counts) {
    if (count > 0) rows.push_back({key.first, key.second, count});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &KernelCount::count);
  return rows;
}

}  // namespace

KernelMatch MatchKernels(const RecordedStep& original, std::span<const NodeId> tops,
                         const RecordedStep& replayed, const DurationOf& duration,
                         std::span<const OwnCode> left_out) {
  std::vector<bool> wanted(original.nodes().size());
  for (const NodeId top : tops) wanted[original.position(top)] = true;
  std::vector<Leaf> leaves = Leaves(original);
  std::erase_if(leaves, [&](const Leaf& leaf) { return !wanted[leaf.top]; });
  const std::vector<Leaf> ran = Leaves(replayed);
  const bool with_strides = SaysStrides(original, leaves) && SaysStrides(replayed, ran);

  struct Recorded {
    int64_t count = 0;
    Nanos time;
  };
  std::map<Key, Recorded> recorded;
  Nanos total;
  uint64_t untimed = 0;
  for (const Leaf& leaf : leaves) {
    Recorded& row = recorded[KeyOf(original, leaf.position, with_strides)];
    ++row.count;
    const auto time = duration(original.nodes()[leaf.position]);
    untimed += time ? 0 : 1;
    row.time = row.time + time.value_or(Nanos{});
    total = total + time.value_or(Nanos{});
  }
  const size_t kernels = leaves.size() + left_out.size();
  std::map<Key, int64_t> missing;
  for (const OwnCode& code : left_out) {
    ++missing[KeyOf(original, original.position(code.node), with_strides)];
    untimed += code.time ? 0 : 1;
    total = total + code.time.value_or(Nanos{});
  }
  std::map<Key, int64_t> extra;
  for (const Leaf& leaf : ran) ++extra[KeyOf(replayed, leaf.position, with_strides)];

  KernelMatch match{.recorded = static_cast<int64_t>(kernels)};
  int64_t shared = 0;
  double shared_time = 0;
  for (const auto& [key, row] : recorded) {
    int64_t& times = extra[key];
    const int64_t both = std::min(row.count, times);
    shared += both;
    shared_time += static_cast<double>(row.time.count) * static_cast<double>(both) /
                   static_cast<double>(row.count);
    times -= both;
    missing[key] += row.count - both;
  }
  if (match.recorded > 0) {
    match.by_count = static_cast<double>(shared) / static_cast<double>(match.recorded);
  }
  if (FewAreUntimed(untimed, kernels) && total.count > 0) {
    match.by_time = shared_time / static_cast<double>(total.count);
  }
  match.missing = Rows(missing);
  match.extra = Rows(extra);
  return match;
}

Phase PhaseAt(const RecordedStep& step, uint32_t position) {
  const Trace& trace = step.trace();
  NodeId node = step.nodes()[position];
  uint32_t below = RecordedStep::kNowhere;
  while (node && step.position(node) < below) {
    if (const auto phase = PhaseOfLabel(trace, node)) return *phase;
    below = step.position(node);
    node = trace.parent(node);
  }
  return Phase::kForward;
}

void OperatorTimeSum::Add(Phase phase, std::string_view op, int64_t count,
                          std::optional<Nanos> recorded, std::optional<Nanos> replayed) {
  OperatorTime& row = rows_
                          .try_emplace({phase, std::string(op)}, OperatorTime{.phase = phase,
                                                                              .op = std::string(op),
                                                                              .recorded = Nanos{},
                                                                              .replayed = Nanos{}})
                          .first->second;
  const auto add = [](std::optional<Nanos>& sum, std::optional<Nanos> more) {
    sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
  };
  row.count += count;
  add(row.recorded, recorded);
  add(row.replayed, replayed);
}

std::vector<OperatorTime> OperatorTimeSum::Rows() const {
  std::vector<OperatorTime> rows;
  for (const auto& [key, row] : rows_) rows.push_back(row);
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const OperatorTime& row) { return row.replayed.value_or(Nanos{}); });
  return rows;
}

std::optional<double> TimeDifference(std::span<const OperatorTime> rows,
                                     std::optional<Phase> phase) {
  double difference = 0;
  double total = 0;
  uint64_t all = 0;
  uint64_t untimed = 0;
  for (const OperatorTime& row : rows) {
    if (phase && row.phase != *phase) continue;
    all += static_cast<uint64_t>(row.count);
    if (!row.recorded || !row.replayed) {
      untimed += static_cast<uint64_t>(row.count);
      continue;
    }
    const auto recorded = static_cast<double>(row.recorded->count);
    difference += std::abs(static_cast<double>(row.replayed->count) - recorded);
    total += recorded;
  }
  if (!FewAreUntimed(untimed, all) || total <= 0) return std::nullopt;
  return difference / total;
}

}  // namespace etude
