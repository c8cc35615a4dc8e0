#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Recorded steps that did the same: the same operators in the same order, on tensors of the same
// types and sizes.
struct StepKind {
  std::vector<size_t> steps;  // by number of their marks, from 0
  size_t typical = 0;         // that of them with the median time, else the first
  std::optional<Nanos> time;  // of all of them; nullopt if a time is missing
  double weight = 0;          // how many steps it stands for: the recorded ones, or WeighKinds'

  // Of one step; nullopt if a time is missing.
  std::optional<double> MeanTime() const;
};

// The kinds of the steps of a trace, by their first steps. A trace with at most one step mark has
// one step. Steps without operators and compiled code are left out, and where something of the
// trace was lost those that lack something.
std::vector<StepKind> FindStepKinds(const Trace& trace);

// Lets the kinds stand for steps of the program instead of recorded ones: by number of the mark,
// for how many each recorded step stands. Without a weight of each step, or with none above zero,
// they stay.
void WeighKinds(std::span<const double> step_weights, std::vector<StepKind>& kinds);

// Each kind's share of the time of the steps that they stand for; empty if times are missing.
std::vector<double> KindTimeShares(std::span<const StepKind> kinds);

// The kind of the step with the median time of all; the first one if times are missing.
const StepKind& MiddleKind(const std::vector<StepKind>& kinds);

}  // namespace etude
