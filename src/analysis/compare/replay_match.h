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

// Returns a node's duration, or nullopt.
using DurationOf = std::function<std::optional<Nanos>(NodeId)>;

// Leaf operators of one kind: the same overload on tensors of the same forms.
struct KernelCount {
  std::string op;      // "aten::mm.out"
  std::string inputs;  // "f32[8,3], f32[3,4]:[1,3]": type, sizes, and strides unless contiguous
  int64_t count = 0;
};

// Agreement of a replay with the recording. Kernels are the innermost operators, which called no
// other.
struct KernelMatch {
  int64_t recorded = 0;            // leaf operators
  std::optional<double> by_count;  // fraction of them that ran; nullopt if there are none
  // That fraction weighted by recorded time; nullopt if more than a few times are unknown
  // (FewAreUntimed).
  std::optional<double> by_time;
  std::vector<KernelCount> missing;  // recorded, but not run; the most frequent first
  std::vector<KernelCount> extra;    // run, but not recorded
};

// Own code of an operator that called others: the time of the operator minus that of its callees;
// nullopt if one of these is unknown.
struct OwnCode {
  NodeId node;
  std::optional<Nanos> time;
};

// Compares multisets of leaf operators inside `tops`, topmost operators of `original`, with all of
// `replayed`. Strides are compared if both have them. `duration` gives durations of the original's
// nodes. `left_out`: code of operators inside `tops` that did not run; it counts as kernels of
// theirs.
KernelMatch MatchKernels(const RecordedStep& original, std::span<const NodeId> tops,
                         const RecordedStep& replayed, const DurationOf& duration,
                         std::span<const OwnCode> left_out = {});

// Returns the training phase of the node at `position`, by the labels around it: forward without
// such labels.
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
  // Adds `count` operators of a kind, with their total times; nullopt makes the sum unknown.
  void Add(Phase phase, std::string_view op, int64_t count, std::optional<Nanos> recorded,
           std::optional<Nanos> replayed);
  // Returns the rows, longest replayed time first.
  std::vector<OperatorTime> Rows() const;

 private:
  std::map<std::pair<Phase, std::string>, OperatorTime> rows_;
};

// Returns the sum of |replayed - recorded| over the sum of recorded time, over the rows of `phase`
// or of all; operators that were not replayed count as 0. nullopt if times of more than a few
// operators are missing (FewAreUntimed) or the recorded time is 0.
std::optional<double> TimeDifference(std::span<const OperatorTime> rows,
                                     std::optional<Phase> phase = std::nullopt);

}  // namespace etude
