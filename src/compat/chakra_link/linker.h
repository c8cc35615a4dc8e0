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

// A node of the linked trace: a host node, or a device operation under one.
struct LinkedNode {
  uint64_t id = 0;
  uint32_t host = 0;      // into HostTrace's nodes
  uint32_t gpu_op = 0;    // into DeviceTrace's events; kNoGpuOp: it is the host node
  uint32_t times = 0;     // into LinkedTrace's times; kNoTimes: the host node has none
  uint32_t sync_dep = 0;  // into LinkedTrace's sync_deps; kNoSync: none
  uint64_t parent = 0;    // meaningful if has_parent
  bool has_parent = false;

  static constexpr uint32_t kNoGpuOp = ~uint32_t{0};
  static constexpr uint32_t kNoTimes = ~uint32_t{0};
  static constexpr uint32_t kNoSync = ~uint32_t{0};
};

// What a host node gets from its event.
struct LinkedTimes {
  PyNumber inclusive;
  PyNumber exclusive;
  PyNumber ts;
  std::optional<uint64_t> inter_thread_dep;
};

// The linked trace, its nodes by id. The host's and the device's own facts stay where they are.
struct LinkedTrace {
  std::vector<LinkedNode> nodes;
  std::vector<LinkedTimes> times;
  std::vector<std::vector<uint64_t>> sync_deps;
};

// The names of the files, for messages.
struct LinkNames {
  std::string host;
  std::string device;
};

// A synchronisation found on the critical path: events with external id `end` wait for the
// operation with external id `start`. Both are numbers of DeviceTrace.
struct SyncDep {
  uint32_t end = 0;
  uint32_t start = 0;
};

// Does what chakra_trace_link of Chakra 1.0.0 does, defects included, but for reading and writing.
// kBadInput where it raises an exception.
Result<LinkedTrace> LinkTraces(const HostTrace& host, const DeviceTrace& device,
                               const std::vector<SyncDep>& sync_deps, const LinkNames& names);

}  // namespace etude::compat
