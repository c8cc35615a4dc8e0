#pragma once

#include <cstddef>
#include <optional>
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
};

// The kinds of the steps of a trace, by their first steps. A trace with at most one step mark has
// one step. Steps without operators and compiled code are left out, and where something of the
// trace was lost those that lack something.
std::vector<StepKind> FindStepKinds(const Trace& trace);

// The kind of the step with the median time of all; the first one if times are missing.
const StepKind& MiddleKind(const std::vector<StepKind>& kinds);

}  // namespace etude
