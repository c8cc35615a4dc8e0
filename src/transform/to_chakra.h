#pragma once

#include <cstdint>
#include <string>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

struct ToChakraOptions {
  // Where nodes wait for themselves, take out the dependencies that contradict the program's order
  // instead of refusing the trace.
  bool break_cycles = false;
  Limits limits;
};

struct ToChakraResult {
  Trace trace;
  uint64_t order_edges = 0;     // added: a host node after the one before it on its thread
  uint64_t stream_edges = 0;    // added: a device node after the one before it on its stream
  uint64_t thread_edges = 0;    // added, of native captures: a thread after another (ThreadEdges)
  uint64_t launch_edges = 0;    // added: a device node after the operator that launched it
  uint64_t contradictions = 0;  // of these four, not added: the trace's own edges say otherwise
  uint64_t adopted = 0;         // host nodes whose caller is not there, put below their thread
  uint64_t retyped = 0;         // host communications that a device node does: now plain operators
  uint64_t broken_edges = 0;    // dependencies taken out of cycles
  bool renumbered = false;      // ids were not unique: all nodes have new ones
};

// Makes of a host-only or linked trace a graph that a simulator can run: every order that the trace
// knows is a dependency, durations without children are known where those with children are, and a
// communication is one node. No node is lost. Chakra traces pass with their dependencies as they
// are.
//
// kBadInput if the trace has cycles and these are not to be broken, and for device traces without a
// host trace.
Result<ToChakraResult> ToChakra(const Trace& trace, const ToChakraOptions& options);

}  // namespace etude
