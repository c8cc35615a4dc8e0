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
  // Places device work without a known operator below its thread's root, or the process root;
  // otherwise drops it. It is counted either way.
  bool keep_orphans = true;
  Limits limits;
};

// A linked trace, with counts that cover every node of both inputs.
struct LinkResult {
  Trace trace;
  std::array<uint64_t, kHostLinkCount> host{};     // nodes of the host trace, by HostLink
  std::array<uint64_t, kEventLinkCount> events{};  // events of the device trace, by EventLink
  uint64_t adopted = 0;    // host nodes with a missing caller, placed below their thread
  uint64_t moved = 0;      // host nodes placed below another caller than in the trace
                           // (right_nesting.h)
  uint64_t ambiguous = 0;  // links with several candidates
  std::array<uint64_t, kSyncKindCount> syncs{};  // waiting calls and records, by SyncKind
  uint64_t sync_edges = 0;                       // dependencies made from them
  uint64_t thread_edges = 0;                     // dependencies between threads
  uint64_t contradictions = 0;                   // of both, left out because the traces' times
                                                 // are inconsistent
  uint64_t overhanging = 0;                      // nodes that end after their caller
  bool renumbered = false;  // host ids were not unique or too large: all nodes have new ones

  uint64_t host_nodes() const;
  uint64_t host_linkable() const;  // all except the process root
  uint64_t host_matched() const;
  uint64_t device_nodes() const;  // device work
  uint64_t device_linked() const;
};

// Joins a host trace of PyTorch's observer with the profiler's trace. Host nodes get start,
// duration and exclusive duration from their matched event. Device work becomes a node below the
// operator that launched it. Host nodes keep their ids and order; device nodes follow in order of
// time.
//
// Host nodes keep their parents, except where the observer nests wrongly (right_nesting.h).
//
// Dependencies, in addition to parents: each host node on the previous one of its thread (kData);
// each device node on the previous one of its stream and on the work its stream waited for; the
// next host node of a thread on the device work that a call waited for (kSync; see sync_edges.h);
// and a thread's first node after a gap on other threads' work in the gap (kSync; thread_edges.h).
// Time in which a call waited for device work counts as wait, not as time of the host node around
// it.
//
// kBadInput if the traces state different ranks.
Result<LinkResult> Link(const Trace& host, const Trace& device, const LinkOptions& options);

}  // namespace etude
