#pragma once

#include <cstdint>
#include <string_view>

namespace etude {

// The kinds of files a trace can come from. For messages and for writers; code that works on a
// trace asks for its TraceTraits. Packed traces contain the numbers, so new formats come last.
enum class TraceFormat : uint8_t {
  kUnknown,
  kPyTorchEt,  // PyTorch execution trace, JSON
  kKineto,     // Kineto / Chrome trace, JSON
  kLinked,     // Chakra host+device ("ET+"), JSON
  kChakra,     // Chakra protobuf (.et)
  kNative,     // capture of the native recorder
  kPerfetto,   // Perfetto trace (.pftrace), read as a profile
};
inline constexpr TraceFormat kLastTraceFormat = TraceFormat::kPerfetto;
std::string_view Name(TraceFormat format);

// Properties that the traces of a source share.
struct TraceTraits {
  // Events of a program's threads and of devices' streams, without arguments of operators.
  bool is_profile = false;
  // Host nodes of PyTorch's observer, which can be linked with a profile. Their nesting is the
  // observer's stack, which is wrong where a call runs on another thread than its caller.
  bool is_observed = false;
  // A host trace joined with a profile. Durations without callees lack the time that a call waited.
  bool is_linked = false;
  // Dependencies state the whole order; nesting, threads and times add nothing to it.
  bool states_order = false;
  // Every call of a collective is a collective; none is an operator beside a label of the backend.
  bool calls_are_collectives = false;
  // Starts and durations show which thread waited for which; dependencies do not state it.
  bool waits_in_times = false;
  // Times of two threads can be compared only up to the time that recording took.
  bool has_loose_thread_times = false;
  // Durations are the time a node takes without its callees (Chakra's convention). The only trait
  // that differs between traces of one format.
  bool exclusive_durations = false;

  friend bool operator==(const TraceTraits&, const TraceTraits&) = default;
};

// Returns the traits of `format`, with inclusive durations.
TraceTraits TraitsOf(TraceFormat format);

}  // namespace etude
