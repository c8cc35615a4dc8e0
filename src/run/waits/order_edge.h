#pragma once

#include <cstdint>

#include "src/base/units.h"
#include "src/trace/value.h"
#include "src/trace/words/enums.h"

namespace etude {

// Reason why one node of a run came after another.
enum class OrderReason : uint8_t {
  kControl,       // dependency of the trace
  kData,          // dependency of the trace
  kSync,          // dependency of the trace
  kThreadOrder,   // next node on its thread
  kStreamOrder,   // next work on its stream
  kLaunch,        // device work launched by the other node
  kStreamWait,    // its stream waited for an event of another stream (cudaStreamWaitEvent)
  kEventSync,     // its thread waited for an event (cudaEventSynchronize)
  kStreamSync,    // its thread waited for a stream (cudaStreamSynchronize)
  kDeviceSync,    // its thread waited for all streams of a device (cudaDeviceSynchronize)
  kBlockingCopy,  // its thread waited for its own copy (cudaMemcpy, copies to pageable memory)
  kCollective,    // its thread called a synchronous collective
  kUseOfResult,   // it uses the result of a collective
  kMessage,       // its thread waited for its own send or receive
  kIdleThread,    // its thread was idle until the other node had ended on another thread
};

// Evidence for the order of two nodes, the strongest first.
enum class Evidence : uint8_t {
  kStated,    // stated in the trace: a dependency, an id, an argument, the name of a call
  kByMemory,  // both use the same memory
  kByThread,  // both are on one thread, one after the other
  kByTime,    // one began when the other had ended: a guess
};

// States that `node` came after `before`.
struct OrderEdge {
  NodeId node;
  NodeId before;
  OrderReason reason = OrderReason::kData;
  Evidence evidence = Evidence::kStated;
  // True if `node` is a call that ended only after `before`, and only waited for the time `waited`;
  // otherwise `node` began after it. An awaited Gloo label may not have ended yet.
  bool in_call = false;
  Nanos waited;

  friend bool operator==(const OrderEdge&, const OrderEdge&) = default;
};

// Returns the reason for a dependency of a trace.
OrderReason ReasonOf(DepKind kind);
// Returns the dependency kind of a trace for the reason.
DepKind KindOf(OrderReason reason);

}  // namespace etude
