#pragma once

#include <array>
#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/device_match.h"
#include "src/transform/host_match.h"

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
  uint64_t ambiguous = 0;                          // links for which several candidates would do
  uint64_t overhanging = 0;                        // nodes that run past the node that called them
  bool renumbered = false;  // host ids were not unique or too large: all nodes have new ones

  uint64_t host_nodes() const;
  uint64_t host_matched() const;
  uint64_t device_nodes() const;  // device work
  uint64_t device_linked() const;
};

// Joins what PyTorch's observer saw on the host with what the profiler measured. Host nodes get
// start, duration and the duration without their children from the event that stands for them;
// device work becomes a node below the operator that launched it. Host nodes keep their ids and
// come in their order, device nodes follow in order of time.
//
// Dependencies, besides parents: each host node after the one before it on its thread (kData), each
// device node after the one before it on its stream (kSync).
//
// kBadInput if the traces say that they are of different ranks.
Result<LinkResult> Link(const Trace& host, const Trace& device, const LinkOptions& options);

}  // namespace etude
