#pragma once

#include <cstdint>
#include <string>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

struct ToChakraOptions {
  // Removes dependencies that contradict program order if nodes wait for themselves, instead of
  // refusing the trace.
  bool break_cycles = false;
  Limits limits;
};

struct ToChakraResult {
  Trace trace;
  uint64_t order_edges = 0;     // added: from a host node to the next one on its thread
  uint64_t stream_edges = 0;    // added: from a device node to the next one on its stream
  uint64_t thread_edges = 0;    // added, for native captures: between threads (ThreadEdges)
  uint64_t launch_edges = 0;    // added: from an operator to the device work it launched
  uint64_t contradictions = 0;  // of these four, not added: they contradict the trace's own edges
  uint64_t adopted = 0;         // host nodes with a missing caller, placed below their thread
  uint64_t retyped = 0;         // host communications done by a device node: now plain operators
  uint64_t broken_edges = 0;    // dependencies removed from cycles
  bool renumbered = false;      // ids were not unique: all nodes have new ones
};

// Converts a host-only or linked trace to a graph for simulators: every known order is a
// dependency, exclusive durations are known where inclusive ones are, and a communication is one
// node. No node is lost. Chakra traces keep their dependencies unchanged.
//
// kBadInput if the trace has cycles that are not to be broken, and for device traces without a host
// trace.
Result<ToChakraResult> ToChakra(const Trace& trace, const ToChakraOptions& options);

}  // namespace etude
