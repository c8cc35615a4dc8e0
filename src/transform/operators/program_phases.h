#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/trace/job/operation_graph.h"
#include "src/trace/trace.h"
#include "src/trace/words/phase.h"

namespace etude {

// What of a program is of one phase: stretches of nodes that come one after the other.
struct PhaseRow {
  Phase phase = Phase::kForward;
  uint64_t stretches = 0;  // 0: not known, labels say it of nodes one by one
  uint64_t nodes = 0;      // of all of them
  uint64_t least = 0;      // of one stretch
  uint64_t most = 0;
  // Of its deepest stretch and of its widest; of labels' nodes, of all together. nullopt: some wait
  // for each other.
  std::optional<LayerShape> shape = LayerShape{};
};

// The steps and phases of a trace: what it states of its parts, or else what its marks and labels
// tell. No rows: neither.
struct ProgramPhases {
  bool stated = false;
  uint64_t steps = 0;
  uint64_t micro_batches = 0;  // 0: not said
  std::vector<PhaseRow> rows;  // in the order of Phase
};

// Errors are those of StatedParts.
Result<ProgramPhases> FindPhases(const Trace& trace);

}  // namespace etude
