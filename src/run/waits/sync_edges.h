#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/run/calls/device_match.h"
#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// Kind of wait for work on a stream.
enum class SyncKind : uint8_t {
  kStreamWait,    // stream for an event of another stream (cudaStreamWaitEvent)
  kEventSync,     // thread for an event (cudaEventSynchronize)
  kStreamSync,    // thread for a stream (cudaStreamSynchronize)
  kDeviceSync,    // thread for all streams of a device (cudaDeviceSynchronize)
  kBlockingCopy,  // thread for its own copy (cudaMemcpy, copies to pageable memory)
  kByTimes,       // any of these, with the awaited work known by times only
  kUnresolved,    // the awaited work is unknown or missing from the trace
};
inline constexpr size_t kSyncKindCount = static_cast<size_t>(SyncKind::kUnresolved) + 1;
std::string_view Name(SyncKind kind);  // stable: used in --json
std::string_view Help(SyncKind kind);

// Returns the kind of wait of a runtime call with this name ("cudaStreamSynchronize"); nullopt if
// it does not wait.
std::optional<SyncKind> WaitingCall(std::string_view name);

struct SyncEdges {
  // Between events of the device trace, in order of the calls' times: device work, or the thread of
  // a call (in_call), waited for device work.
  std::vector<OrderEdge> edges;
  std::array<uint64_t, kSyncKindCount> calls{};
  // By event: time in which a runtime call only waited for work in `edges`; 0 for other events.
  std::vector<Nanos> waited;
};

// Finds waits for device work over the whole trace, from the profiler's synchronization records and
// from runtime calls with sufficient names. A stream runs its work in launch order; an event stands
// for all work launched on its stream before it was recorded.
//
// If the awaited work is not recorded (PyTorch 2.11 on CUDA 13 writes -1 for the stream of every
// event), it is inferred from times. A call waited for the last work that ended during the call and
// was launched before it. The next work of a waiting stream waited for the last work of another
// stream that was launched before the wait and ended after the launch of that next work and after
// the previous work on its stream. Calls that only query (cudaEventQuery) do not wait.
//
// A thread that waits for a device gets edges only to the last work of streams that its previous
// waits do not cover: its later calls come after the work awaited by those, and after all work that
// was over by then, anyway. So there is at most one edge per thread and stream, one per thread and
// work launched between its waits, and a limited number per wait for unfinished work. O(n log n +
// edges).
SyncEdges FindSyncEdges(const Trace& device, const DeviceMatch& match);

}  // namespace etude
