#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/trace/trace.h"
#include "src/trace/words/record_scope.h"

namespace etude {

// Parts of a training step, and those of inference with a cache.
enum class Phase : uint8_t {
  kForward,
  kBackward,
  kOptimizer,
  kPrefill,  // prompts
  kDecode,   // one token of each sequence at a time
};
inline constexpr Phase kPhases[] = {Phase::kForward, Phase::kBackward, Phase::kOptimizer};
inline constexpr Phase kAllPhases[] = {Phase::kForward, Phase::kBackward, Phase::kOptimizer,
                                       Phase::kPrefill, Phase::kDecode};
std::string_view Name(Phase phase);

// Returns the phase that a label begins: nodes below it belong to that phase, unless a label in
// between begins another one. nullopt for all other nodes. Nodes outside such labels are forward.
std::optional<Phase> PhaseOfLabel(const Trace& trace, NodeId node);

}  // namespace etude
