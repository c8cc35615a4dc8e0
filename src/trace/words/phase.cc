#include "src/trace/words/phase.h"

#include "src/trace/words/operator_name.h"

namespace etude {

std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kOptimizer: return "optimizer";
    case Phase::kPrefill: return "prefill";
    case Phase::kDecode: return "decode";
  }
  return "";
}

std::optional<Phase> PhaseOfLabel(const Trace& trace, NodeId node) {
  const std::string_view name = trace.name(node);
  if (name.starts_with("Optimizer.")) return Phase::kOptimizer;
  if (trace.scope(node) == kBackwardScope || name.starts_with(kAutogradCall)) {
    return Phase::kBackward;
  }
  return std::nullopt;
}

}  // namespace etude
