#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/groups.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/python/py_number.h"

namespace etude::compat {

// A node of the linked trace: a host node, or a device operation below one.
struct LinkedNode {
  uint64_t id = 0;
  uint32_t host = 0;      // index in HostTrace::nodes
  uint32_t gpu_op = 0;    // index in DeviceTrace::events; kNoGpuOp: a host node
  uint32_t times = 0;     // index in LinkedTrace::times; kNoTimes: none
  uint32_t sync_dep = 0;  // index in LinkedTrace::sync_deps; kNoSync: none
  uint64_t parent = 0;    // valid if has_parent
  bool has_parent = false;

  static constexpr uint32_t kNoGpuOp = ~uint32_t{0};
  static constexpr uint32_t kNoTimes = ~uint32_t{0};
  static constexpr uint32_t kNoSync = ~uint32_t{0};
};

// Data that a host node gets from its event.
struct LinkedTimes {
  PyNumber inclusive;
  PyNumber exclusive;
  PyNumber ts;
  std::optional<uint64_t> inter_thread_dep;
};

// The linked trace, with nodes by id. Data of host and device remain in their traces.
struct LinkedTrace {
  std::vector<LinkedNode> nodes;
  std::vector<LinkedTimes> times;
  std::vector<std::vector<uint64_t>> sync_deps;
};

// File names for messages.
struct LinkNames {
  std::string host;
  std::string device;
};

// A synchronisation on the critical path: events with external id `end` wait for the operation with
// external id `start`. Both are indices in DeviceTrace::external_ids.
struct SyncDep {
  uint32_t end = 0;
  uint32_t start = 0;
};

// Links traces like chakra_trace_link of Chakra 1.0.0, including its defects, without reading and
// writing. kBadInput where it raises an exception.
Result<LinkedTrace> LinkTraces(const HostTrace& host, const DeviceTrace& device,
                               const std::vector<SyncDep>& sync_deps, const LinkNames& names);

}  // namespace etude::compat
