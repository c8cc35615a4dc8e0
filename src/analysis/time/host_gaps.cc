#include "src/analysis/time/host_gaps.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "src/run/step/recorded_step.h"

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

void MarkIdle(HostGaps& gaps, const Waiting& waiting) {
  // A shorter wait takes less than its own overhead.
  constexpr Nanos kShortest{100'000};
  std::vector<Nanos> all = gaps.before;
  all.push_back(gaps.after);
  std::vector<size_t> longest(all.size());
  std::iota(longest.begin(), longest.end(), size_t{0});
  std::ranges::stable_sort(longest, std::greater(), [&](size_t i) { return all[i]; });
  gaps.idle.assign(all.size(), Nanos{});
  Nanos left = waiting.time;
  for (size_t i = 0; i < longest.size() && static_cast<int64_t>(i) < waiting.times; ++i) {
    const Nanos gap = all[longest[i]];
    if (gap < kShortest || left <= Nanos{}) break;
    gaps.idle[longest[i]] = std::min(gap, left);
    left = left - gaps.idle[longest[i]];
  }
}

std::optional<HostGaps> FindHostGaps(const Trace& trace, NodeId mark, const HostGapsOf& of) {
  const auto span_of = [&](NodeId node, uint32_t index) -> std::optional<Span> {
    const auto begin = trace.start(node);
    const auto length = trace.duration(node);
    if (!begin || !length) return std::nullopt;
    return Span{*begin, *begin + *length, index};
  };
  if (!mark) return std::nullopt;
  const auto whole = span_of(mark, kOther);
  if (!whole) return std::nullopt;

  std::vector<Span> spans;
  spans.reserve(of.operators.size() + of.others.size());
  for (uint32_t i = 0; i < of.operators.size(); ++i) {
    if (const auto span = span_of(of.operators[i], i)) spans.push_back(*span);
  }
  for (const NodeId node : of.others) {
    if (const auto span = span_of(node, kOther)) spans.push_back(*span);
  }
  const size_t nodes = of.operators.size() + of.others.size();
  if (!FewAreUntimed(nodes - spans.size(), nodes)) return std::nullopt;
  std::ranges::stable_sort(spans, {}, [](const Span& span) { return span.begin; });

  HostGaps gaps;
  gaps.before.resize(of.operators.size());
  Nanos reached = whole->begin;
  Nanos gap;  // since the last operator, around others
  const auto pass = [&](Nanos until) {
    if (until <= reached) return;
    const Interval idle{reached, until};
    const Nanos waited = of.waits.Within(idle);
    gaps.waits = gaps.waits + waited;
    gap = gap + (idle.length() - waited);
    reached = until;
  };
  for (const Span& span : spans) {
    pass(std::min(span.begin, whole->end));
    reached = std::max(reached, std::min(span.end, whole->end));
    if (span.index != kOther) gaps.before[span.index] = std::exchange(gap, Nanos{});
  }
  pass(whole->end);
  gaps.after = gap;
  return gaps;
}

}  // namespace etude
