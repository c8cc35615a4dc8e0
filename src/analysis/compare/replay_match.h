#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/words/phase.h"

namespace etude {

// A node's duration, or nullopt.
using DurationOf = std::function<std::optional<Nanos>(NodeId)>;

// Leaf operators of one kind: the same overload on tensors of the same forms.
struct KernelCount {
  std::string op;      // "aten::mm.out"
  std::string inputs;  // "f32[8,3], f32[3,4]:[1,3]": type, sizes, and strides unless contiguous
  int64_t count = 0;
};

// How far what a replay ran is what was recorded. Kernels are the innermost operators: those that
// called no other.
struct KernelMatch {
  int64_t recorded = 0;            // leaf operators
  std::optional<double> by_count;  // share of them that ran; nullopt if there are none
  // The same, weighted by recorded time; nullopt if more than a few have none (FewAreUntimed).
  std::optional<double> by_time;
  std::vector<KernelCount> missing;  // recorded, but not run; the most frequent first
  std::vector<KernelCount> extra;    // run, but not recorded
};

// Code of an operator that called others and worked itself: the time of the operator less that of
// what it called; nullopt if one of these is unknown.
struct OwnCode {
  NodeId node;
  std::optional<Nanos> time;
};

// Compares multisets of leaf operators inside `tops`, topmost operators of `original`, with all of
// `replayed`. Strides are compared where both say them. `duration`: of the original's nodes.
// `left_out`: code of operators inside `tops` that did not run; it counts as kernels of theirs.
KernelMatch MatchKernels(const RecordedStep& original, std::span<const NodeId> tops,
                         const RecordedStep& replayed, const DurationOf& duration,
                         std::span<const OwnCode> left_out = {});

// The phase of training that the node at `position` belongs to, by the labels around it: forward
// where no label says otherwise.
Phase PhaseAt(const RecordedStep& step, uint32_t position);

// One kind of operator in one phase, recorded and replayed.
struct OperatorTime {
  Phase phase = Phase::kForward;
  std::string op;
  int64_t count = 0;
  std::optional<Nanos> recorded;  // total in the recorded step; nullopt if a time is missing
  std::optional<Nanos> replayed;  // total in a replayed step
};

// Sums times of operators by phase and name.
class OperatorTimeSum {
 public:
  // Adds `count` operators of a kind, with their times together; nullopt makes the sum unknown.
  void Add(Phase phase, std::string_view op, int64_t count, std::optional<Nanos> recorded,
           std::optional<Nanos> replayed);
  // Those that took longest in the replay first.
  std::vector<OperatorTime> Rows() const;

 private:
  std::map<std::pair<Phase, std::string>, OperatorTime> rows_;
};

// Sum of |replayed - recorded| over the sum of recorded time, over the rows of `phase` or of all;
// what was not replayed counts as 0. nullopt if times of more than a few operators are missing
// (FewAreUntimed) or nothing took any.
std::optional<double> TimeDifference(std::span<const OperatorTime> rows,
                                     std::optional<Phase> phase = std::nullopt);

}  // namespace etude
