#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/phase.h"

// Step, phase and micro-batch of nodes, as stated by the generator of a trace in a fact of the
// whole trace. docs/formats/chakra.md has the format.
namespace etude {

struct ProgramPart {
  int64_t step = 0;
  Phase phase = Phase::kForward;
  std::optional<int64_t> micro_batch;  // nullopt: none, or all

  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

// Nodes with source ids from `first` to `last`, inclusive.
struct ProgramSpan {
  ProgramPart part;
  uint64_t first = 0;
  uint64_t last = 0;

  friend bool operator==(const ProgramSpan&, const ProgramSpan&) = default;
};

inline constexpr std::string_view kProgramPartsKey = "etude_parts";

// Stores the spans, which must be ascending and disjoint. Stores nothing if there are none.
void StateParts(std::span<const ProgramSpan> spans, TraceBuilder& builder);
// Removes the parts, for traces with other node ids than those of the parts.
void ForgetParts(TraceBuilder& builder);

// Returns the stored spans, ascending and disjoint; empty if there are none. kBadInput for a value
// that StateParts does not write.
Result<std::vector<ProgramSpan>> StatedParts(const Trace& trace);

// Returns the span of each node, nullptr if it has none. Points into `spans`.
std::vector<const ProgramSpan*> SpansOfNodes(const Trace& trace,
                                             std::span<const ProgramSpan> spans);

}  // namespace etude
