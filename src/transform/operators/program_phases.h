#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/trace/job/operation_graph.h"
#include "src/trace/trace.h"
#include "src/trace/words/phase.h"

namespace etude {

// A phase of a program: contiguous stretches of nodes.
struct PhaseRow {
  Phase phase = Phase::kForward;
  uint64_t stretches = 0;  // 0: unknown, because labels assign nodes one by one
  uint64_t nodes = 0;      // total of all stretches
  uint64_t least = 0;      // of one stretch
  uint64_t most = 0;
  // Depth of its deepest stretch and width of its widest; for labelled nodes, of all together.
  // nullopt: there is a cycle.
  std::optional<LayerShape> shape = LayerShape{};
};

// Steps and phases of a trace, by its stated parts, or else by its marks and labels. No rows if it
// has neither.
struct ProgramPhases {
  bool stated = false;
  uint64_t steps = 0;
  uint64_t micro_batches = 0;  // 0: unknown
  std::vector<PhaseRow> rows;  // in the order of Phase
};

// Errors are those of StatedParts.
Result<ProgramPhases> FindPhases(const Trace& trace);

}  // namespace etude
