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

// Which nodes are of which step, phase and micro-batch, as who made the trace says: generated
// traces have it as a fact of the whole. docs/formats/chakra.md says how it is written.
namespace etude {

struct ProgramPart {
  int64_t step = 0;
  Phase phase = Phase::kForward;
  std::optional<int64_t> micro_batch;  // nullopt: of none, or of all

  friend bool operator==(const ProgramPart&, const ProgramPart&) = default;
};

// The nodes of which the ids in the file are `first` to `last`.
struct ProgramSpan {
  ProgramPart part;
  uint64_t first = 0;
  uint64_t last = 0;

  friend bool operator==(const ProgramSpan&, const ProgramSpan&) = default;
};

inline constexpr std::string_view kProgramPartsKey = "etude_parts";

// `spans`: ascending and apart. None: nothing is said.
void StateParts(std::span<const ProgramSpan> spans, TraceBuilder& builder);
// For traces whose nodes have other ids than those that the parts are of.
void ForgetParts(TraceBuilder& builder);

// What the trace says, ascending and apart; empty if it says nothing. kBadInput for what no
// StateParts has written.
Result<std::vector<ProgramSpan>> StatedParts(const Trace& trace);

// By node: the span it is in, nullptr for none. Points into `spans`.
std::vector<const ProgramSpan*> SpansOfNodes(const Trace& trace,
                                             std::span<const ProgramSpan> spans);

}  // namespace etude
