#include "src/analysis/host_gaps.h"

#include <algorithm>
#include <cstdint>

namespace etude {
namespace {

constexpr uint32_t kOther = UINT32_MAX;

struct Span {
  Nanos begin;
  Nanos end;
  uint32_t index = kOther;  // of the operator
};

}  // namespace

Nanos HostGaps::total() const {
  Nanos sum = after;
  for (const Nanos gap : before) sum = sum + gap;
  return sum;
}

std::optional<HostGaps> FindHostGaps(const RecordedStep& step, std::span<const NodeId> operators,
                                     std::span<const NodeId> others,
                                     const std::function<std::optional<Nanos>(NodeId)>& duration) {
  const Trace& trace = step.trace();
  const auto span_of = [&](NodeId node, uint32_t index) -> std::optional<Span> {
    const auto begin = trace.start(node);
    const auto length = duration(node);
    if (!begin || !length) return std::nullopt;
    return Span{*begin, *begin + *length, index};
  };
  if (!step.mark()) return std::nullopt;
  const auto whole = span_of(step.mark(), kOther);
  if (!whole) return std::nullopt;

  std::vector<Span> spans;
  spans.reserve(operators.size() + others.size());
  for (uint32_t i = 0; i < operators.size(); ++i) {
    const auto span = span_of(operators[i], i);
    if (!span) return std::nullopt;
    spans.push_back(*span);
  }
  for (const NodeId node : others) {
    const auto span = span_of(node, kOther);
    if (!span) return std::nullopt;
    spans.push_back(*span);
  }
  std::ranges::stable_sort(spans, {}, [](const Span& span) { return span.begin; });

  HostGaps gaps;
  gaps.before.resize(operators.size());
  Nanos reached = whole->begin;
  Nanos waiting;  // before others, since the last operator
  for (const Span& span : spans) {
    const Nanos begin = std::min(span.begin, whole->end);
    if (begin > reached) waiting = waiting + (begin - reached);
    reached = std::max(reached, std::min(span.end, whole->end));
    if (span.index == kOther) continue;
    gaps.before[span.index] = waiting;
    waiting = Nanos{};
  }
  gaps.after = waiting + (whole->end - reached);
  return gaps;
}

}  // namespace etude
