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

// What makes one thing wait for work on a stream.
enum class SyncKind : uint8_t {
  kStreamWait,    // work on a stream for an event of another stream (cudaStreamWaitEvent)
  kEventSync,     // a thread for an event (cudaEventSynchronize)
  kStreamSync,    // a thread for a stream (cudaStreamSynchronize)
  kDeviceSync,    // a thread for all streams of a device (cudaDeviceSynchronize)
  kBlockingCopy,  // a thread for its own copy (cudaMemcpy, copies to pageable memory)
  kByTimes,       // any of these, of which only times say for what work
  kUnresolved,    // the trace does not say what is waited for, or does not have it
};
inline constexpr size_t kSyncKindCount = static_cast<size_t>(SyncKind::kUnresolved) + 1;
std::string_view Name(SyncKind kind);  // stable: appears in --json
std::string_view Help(SyncKind kind);

// What a call of the runtime with this name waits for ("cudaStreamSynchronize"); nullopt if it
// waits for nothing.
std::optional<SyncKind> WaitingCall(std::string_view name);

struct SyncEdges {
  // Between events of the device trace, in order of time of the calls: device work, or the thread
  // of a call (in_call), waited for device work.
  std::vector<OrderEdge> edges;
  std::array<uint64_t, kSyncKindCount> calls{};
  // Per call of the runtime, the part of it in which the thread did nothing but wait for work that
  // is named in `edges`; by event, 0 for all others.
  std::vector<Nanos> waited;
};

// Finds who waits for which device work, over the whole trace: from the profiler's records of
// synchronisation, and from calls of the runtime whose names say all that is needed. A stream runs
// its work in the order in which it was launched; an event stands for all work launched on its
// stream before it was recorded.
//
// Where nothing says for what (PyTorch 2.11 on CUDA 13 writes -1 for the stream of every event),
// times do: a call waited for the last work that ended while it ran and had been launched before;
// the next work of a stream that was told to wait, for the last work of another stream that was
// launched before that and ended after the launch of the next work and after the work before it on
// its stream. Calls that only ask (cudaEventQuery) wait for nothing.
//
// A thread that waits for a device has edges to the last work of those streams only of which its
// waits before do not see to that: what it waited for, and what was over when that call was, its
// next calls come after anyway. So these edges are at most one for each thread and stream, one for
// each thread and work launched between its waits, and of work that is not over a limited number
// for each wait. O(n log n + edges).
SyncEdges FindSyncEdges(const Trace& device, const DeviceMatch& match);

}  // namespace etude
