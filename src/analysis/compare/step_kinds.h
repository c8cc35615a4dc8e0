#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Recorded steps with the same operators in the same order, on tensors of the same types and sizes.
struct StepKind {
  std::vector<size_t> steps;  // by number of their marks, from 0
  size_t typical = 0;         // the one with the median time, else the first
  std::optional<Nanos> time;  // total; nullopt if a time is missing
  double weight = 0;          // number of steps it represents: the recorded ones, or by WeighKinds

  // Returns the mean time of a step; nullopt if a time is missing.
  std::optional<double> MeanTime() const;
};

// Returns the kinds of a trace's steps, ordered by their first steps. A trace with at most one step
// mark has one step. Leaves out steps without operators and compiled code and, if parts of the
// trace were lost, incomplete steps.
std::vector<StepKind> FindStepKinds(const Trace& trace);

// Sets the weights of kinds to steps of the program instead of recorded ones. `step_weights`: by
// number of the mark, the number of steps that each recorded step represents. Without a weight for
// each step, or with none above zero, weights stay unchanged.
void WeighKinds(std::span<const double> step_weights, std::vector<StepKind>& kinds);

// Returns each kind's share of the total time of the represented steps; empty if times are missing.
std::vector<double> KindTimeShares(std::span<const StepKind> kinds);

// Returns the kind of the step with the median time of all; the first one if times are missing.
const StepKind& MiddleKind(const std::vector<StepKind>& kinds);

}  // namespace etude
