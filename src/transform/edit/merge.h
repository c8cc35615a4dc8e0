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
  uint64_t dangling = 0;        // references left out, to nodes that were never there
  uint64_t renamed_groups = 0;  // process groups of one name and other members than one before
};

// The traces of several processes as one. Nodes keep their order and have new ids, the first
// input's first. A lane's process is the input's label, and behind it what it was called before.
// Numbers that tell things of one process apart (threads, correlations) are moved so that they do
// so here. Facts of whole traces that all share stay; of others each is kept with its label in
// front.
//
// kBadInput for profiles without host traces, and if durations mean different things.
Result<MergeResult> Merge(std::span<const MergeInput> inputs, const Limits& limits);

}  // namespace etude
