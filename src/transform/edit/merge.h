#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

struct MergeInput {
  const Trace* trace = nullptr;
  std::string label;  // "rank 3": distinct among the inputs
  Nanos offset;       // subtracted from its times
};

struct MergeResult {
  Trace trace;
  uint64_t dangling = 0;        // removed references to missing nodes
  uint64_t renamed_groups = 0;  // process groups with the name of an earlier one and other members
};

// Merges the traces of several processes into one. Nodes keep their order and get new ids, the
// first input's first. A lane's process is the input's label, followed by its previous name.
// Numbers that identify things within one process (threads, correlations) are shifted so that they
// stay distinct. Facts of whole traces that all inputs share stay; others are kept with their
// input's label as a prefix.
//
// kBadInput for profiles without host traces, and if durations have different meanings.
Result<MergeResult> Merge(std::span<const MergeInput> inputs, const Limits& limits);

}  // namespace etude
