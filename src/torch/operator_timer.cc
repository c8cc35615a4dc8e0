#include "src/torch/operator_timer.h"

#include <algorithm>
#include <utility>

namespace etude {
namespace {

// Limits of the calls of one operator in a round, if it is repeated alone.
constexpr int64_t kLeastCalls = 3;
constexpr int64_t kMostCalls = 200;
constexpr Nanos kEnough{2'000'000};

}  // namespace

Result<OperatorTimer> OperatorTimer::Prepare(const Trace& trace, const ReplayOptions& options,
                                             const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(trace, options, context));
  if (replayer.report().device != "cpu") {
    return Unavailable("operators are measured on the CPU only, found device '" +
                       replayer.report().device + "'");
  }
  OperatorTimer timer(std::move(replayer));
  const std::vector<NodeId> nodes = timer.replayer_.operators();
  timer.operators_ = nodes.size();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto key = KeyOf(trace, nodes[i])) timer.places_[*key].push_back(i);
  }
  return timer;
}

void OperatorTimer::Want(const std::function<bool(const OperatorKey&)>& wanted) {
  for (const auto& [key, places] : places_) {
    if (wanted(key)) rounds_[key];
  }
}

size_t OperatorTimer::stable() const {
  return static_cast<size_t>(std::ranges::count_if(rounds_, [&](const auto& one) {
    return one.second.is_stable() || failures_.contains(one.first);
  }));
}

Status OperatorTimer::Round(bool in_step) { return in_step ? TimeInStep() : Repeat(); }

Status OperatorTimer::TimeInStep() {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<Nanos> times, replayer_.TimeOperators());
  for (auto& [key, rounds] : rounds_) {
    std::vector<Nanos> calls;
    for (const size_t place : places_[key]) calls.push_back(times[place]);
    rounds.Add(calls);
  }
  return {};
}

Status OperatorTimer::Repeat() {
  std::vector<OperatorRepetition> repetitions(operators_);
  for (const auto& [key, rounds] : rounds_) {
    if (rounds.is_stable() || failures_.contains(key)) continue;
    OperatorRepetition& repetition = repetitions[places_[key].front()];
    repetition.least = kLeastCalls;
    repetition.most = kMostCalls;
    repetition.enough = kEnough;
  }
  ETUDE_RETURN_IF_ERROR(replayer_.RepeatOperators(repetitions));
  for (auto& [key, rounds] : rounds_) {
    OperatorRepetition& repetition = repetitions[places_[key].front()];
    if (!repetition.failure.empty()) failures_.emplace(key, repetition.failure);
    // The first call finds other caches than the rest.
    if (repetition.times.size() > 1) repetition.times.erase(repetition.times.begin());
    rounds.Add(repetition.times);
  }
  return {};
}

std::map<OperatorKey, MeasuredCall> OperatorTimer::Times() const {
  std::map<OperatorKey, MeasuredCall> times;
  for (const auto& [key, rounds] : rounds_) {
    if (rounds.rounds() > 0 && !failures_.contains(key)) times.emplace(key, rounds.Time());
  }
  return times;
}

}  // namespace etude
