#pragma once

#include <array>
#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/run/calls/device_match.h"
#include "src/run/calls/host_match.h"
#include "src/run/waits/sync_edges.h"
#include "src/trace/trace.h"

namespace etude {

struct LinkOptions {
  // Device work whose operator was not found goes below its thread's root, or the process root;
  // otherwise it is left out. It is counted either way.
  bool keep_orphans = true;
  Limits limits;
};

// A linked trace, and an account of every node of both inputs.
struct LinkResult {
  Trace trace;
  std::array<uint64_t, kHostLinkCount> host{};     // nodes of the host trace, by HostLink
  std::array<uint64_t, kEventLinkCount> events{};  // events of the device trace, by EventLink
  uint64_t adopted = 0;    // host nodes whose caller is not there, put below their thread
  uint64_t moved = 0;      // host nodes below another caller than the trace has (right_nesting.h)
  uint64_t ambiguous = 0;  // links for which several candidates would do
  std::array<uint64_t, kSyncKindCount> syncs{};  // calls and records that wait, by SyncKind
  uint64_t sync_edges = 0;                       // dependencies that they became
  uint64_t thread_edges = 0;                     // dependencies between threads
  uint64_t contradictions = 0;                   // of both, left out: the traces' times are wrong
  uint64_t overhanging = 0;                      // nodes that run past the node that called them
  bool renumbered = false;  // host ids were not unique or too large: all nodes have new ones

  uint64_t host_nodes() const;
  uint64_t host_linkable() const;  // all but the process root
  uint64_t host_matched() const;
  uint64_t device_nodes() const;  // device work
  uint64_t device_linked() const;
};

// Joins what PyTorch's observer saw on the host with what the profiler measured. Host nodes get
// start, duration and the duration without their children from the event that stands for them;
// device work becomes a node below the operator that launched it. Host nodes keep their ids and
// come in their order, device nodes follow in order of time.
//
// Host nodes keep their parents but where the observer nests wrongly (right_nesting.h).
//
// Dependencies, besides parents: each host node after the one before it on its thread (kData), each
// device node after the one before it on its stream, after what its stream waited for, and the next
// host node of a thread after the device work that a call waited for (kSync; see sync_edges.h), a
// thread's first node after a gap after what other threads did meanwhile (kSync; thread_edges.h).
// Time in which a call waited for device work counts for the wait, not for the host node around it.
//
// kBadInput if the traces say that they are of different ranks.
Result<LinkResult> Link(const Trace& host, const Trace& device, const LinkOptions& options);

}  // namespace etude
