#include "src/analysis/time/typical_times.h"

#include <algorithm>
#include <utility>

#include "src/analysis/time/time_summary.h"

namespace etude {
namespace {

// Returns true if both ran the same nodes, including labels. A step mark has another number in each
// step.
bool HaveSameNodes(const RecordedStep& a, const RecordedStep& b) {
  return std::ranges::equal(a.nodes(), b.nodes(), [&](NodeId x, NodeId y) {
    const Trace& trace = a.trace();
    return trace.name(x) == trace.name(y) || (x == a.mark() && y == b.mark());
  });
}

}  // namespace

TypicalTimes::TypicalTimes(const RecordedStep& step, std::string_view label,
                           std::span<const size_t> alike)
    : step_(step) {
  const Trace& trace = step.trace();
  if (step.mark()) step_time_ = trace.duration(step.mark());
  if (alike.empty()) return;
  std::vector<size_t> order(alike.begin(), alike.end());
  for (size_t i = 0; i < step.mark_count(); ++i) {
    if (!std::ranges::binary_search(alike, i)) order.push_back(i);
  }
  std::vector<size_t> of_kind;  // of the twins
  for (size_t i = 0; i < order.size() && twins_.size() + 1 < kStepsMax; ++i) {
    const auto other = RecordedStep::Select(trace, label, order[i]);
    if (!other || other->mark() == step.mark() || !HaveSameNodes(step, *other)) continue;
    if (i < alike.size()) of_kind.push_back(twins_.size());
    twins_.push_back({{other->nodes().begin(), other->nodes().end()}, other->mark()});
  }
  FindDurations(of_kind);
  std::vector<Nanos> times;
  if (step_time_) times.push_back(*step_time_);
  for (const Twin& twin : twins_) {
    if (const auto time = twin.mark ? trace.duration(twin.mark) : std::nullopt) {
      times.push_back(*time);
    }
  }
  step_time_ = Median(std::move(times));
}

void TypicalTimes::FindDurations(const std::vector<size_t>& twins) {
  if (twins.empty()) return;
  const Trace& trace = step_.trace();
  durations_.reserve(step_.nodes().size());
  for (size_t i = 0; i < step_.nodes().size(); ++i) {
    std::vector<Nanos> times;
    const auto add = [&](NodeId node) {
      if (const auto time = trace.duration(node)) times.push_back(*time);
    };
    add(step_.nodes()[i]);
    for (const size_t twin : twins) add(twins_[twin].nodes[i]);
    durations_.push_back(Median(std::move(times)));
  }
}

std::optional<Nanos> TypicalTimes::duration(NodeId node) const {
  const uint32_t position = step_.position(node);
  if (position >= durations_.size()) return step_.trace().duration(node);
  return durations_[position];
}

std::optional<HostGaps> TypicalTimes::Gaps(const HostGapsOf& of) const {
  const Trace& trace = step_.trace();
  auto own = FindHostGaps(trace, step_.mark(), of);
  if (!of.waits.empty() || twins_.empty()) return own;
  std::vector<HostGaps> found;
  if (own) found.push_back(*std::move(own));
  for (const Twin& twin : twins_) {
    const auto same = [&](std::span<const NodeId> nodes) {
      std::vector<NodeId> mapped;
      mapped.reserve(nodes.size());
      for (const NodeId node : nodes) mapped.push_back(twin.nodes[step_.position(node)]);
      return mapped;
    };
    const std::vector<NodeId> operators = same(of.operators);
    const std::vector<NodeId> others = same(of.others);
    if (auto gaps = FindHostGaps(trace, twin.mark,
                                 {.operators = operators, .others = others, .waits = {}})) {
      found.push_back(*std::move(gaps));
    }
  }
  if (found.empty()) return std::nullopt;
  HostGaps typical;
  typical.before.resize(of.operators.size());
  std::vector<Nanos> times(found.size());
  for (size_t i = 0; i <= of.operators.size(); ++i) {
    const auto at = [&](HostGaps& gaps) -> Nanos& {
      return i < of.operators.size() ? gaps.before[i] : gaps.after;
    };
    std::ranges::transform(found, times.begin(), at);
    at(typical) = *Median(times);
  }
  return typical;
}

}  // namespace etude
