#include "src/trace/trace_traits.h"

namespace etude {

std::string_view Name(TraceFormat format) {
  switch (format) {
    case TraceFormat::kUnknown: return "unknown";
    case TraceFormat::kPyTorchEt: return "pytorch-et";
    case TraceFormat::kKineto: return "kineto";
    case TraceFormat::kLinked: return "linked";
    case TraceFormat::kChakra: return "chakra";
    case TraceFormat::kNative: return "native";
    case TraceFormat::kPerfetto: return "perfetto";
  }
  return "unknown";
}

TraceTraits TraitsOf(TraceFormat format) {
  switch (format) {
    case TraceFormat::kUnknown: return {};
    case TraceFormat::kPyTorchEt: return {.is_observed = true};
    case TraceFormat::kKineto:
    case TraceFormat::kPerfetto: return {.is_profile = true, .waits_in_times = true};
    case TraceFormat::kLinked: return {.is_linked = true};
    case TraceFormat::kChakra: return {.states_order = true, .calls_are_collectives = true};
    case TraceFormat::kNative: return {.waits_in_times = true, .has_loose_thread_times = true};
  }
  return {};
}

}  // namespace etude
