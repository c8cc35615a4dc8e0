#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Memory of one device over time. Views point into the trace.
struct DeviceMemory {
  // Memory in use from `node` on.
  struct Point {
    NodeId node;
    std::optional<Nanos> time;  // begin of the node
    Bytes live;
  };
  // Live memory at the peak, by its creator.
  struct Holder {
    std::string_view op;      // kOutsideMemory: it existed before
    std::string_view module;  // kNoModule if unknown
    uint64_t count = 0;
    Bytes bytes;
  };

  std::string device;  // "cpu", "cuda:0"
  Bytes peak;
  Point at_peak;                  // where it is first reached
  std::optional<Bytes> at_start;  // before the first node; nullopt: unknown, and not counted
  Bytes at_end;                   // in use after the last node
  // True if the amount in use is recorded. Otherwise figures are lower bounds from allocations and
  // releases. False only for events of some allocators.
  bool has_totals = true;
  std::optional<Bytes> reserved;  // max reserved by the allocator; only for allocators' events
  uint64_t allocations = 0;       // pieces of memory made, without those from before
  std::vector<Point> timeline;    // a point per change
  std::vector<Holder> holders;    // max bytes first
};

inline constexpr std::string_view kOutsideMemory = "(outside the step)";

// Returns the memory of the tensors of one recorded step (RecordedStep) by device name, by the
// storages in which they lie. A lower bound: a piece of memory counts from the operator that made
// it, or from the beginning if it existed before, to its last recorded use. Gradients, and earlier
// memory that was changed (parameters, optimizer state), count to the end. Its size is that
// required by the recorded tensors in it. A trace lacks operators' internal memory, the allocator's
// rounding and caching, and tensors that are never an input or output. kBadInput if there are no
// operators with tensors.
Result<std::vector<DeviceMemory>> TensorMemory(const Trace& trace);

// Returns the memory stated in generated traces (etude generate --memory), in file order, without
// holders. Empty if the trace has none.
std::vector<DeviceMemory> StatedMemory(const Trace& trace);

// Returns the memory reported by PyTorch's allocators to the profiler (profile_memory=True): exact
// for their allocations. Empty if the trace has no such events. Memory allocated before the first
// event and never freed is one holder. On the CPU it is unknown and not counted, because PyTorch
// counts allocations there only while a profiler runs. It is also unknown for allocators that do
// not report the amount in use (PyTorch 1.9).
std::vector<DeviceMemory> AllocatorMemory(const Trace& trace);

}  // namespace etude
