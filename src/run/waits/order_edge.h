#pragma once

#include <cstdint>

#include "src/base/units.h"
#include "src/trace/value.h"
#include "src/trace/words/enums.h"

namespace etude {

// Why one node of a run came after another.
enum class OrderReason : uint8_t {
  kControl,       // a dependency of the trace
  kData,          // a dependency of the trace
  kSync,          // a dependency of the trace
  kThreadOrder,   // it is the next one on its thread
  kStreamOrder,   // it is the next one on its stream
  kLaunch,        // it is device work that the other one launched
  kStreamWait,    // its stream waited for an event of another stream (cudaStreamWaitEvent)
  kEventSync,     // its thread waited for an event (cudaEventSynchronize)
  kStreamSync,    // its thread waited for a stream (cudaStreamSynchronize)
  kDeviceSync,    // its thread waited for all streams of a device (cudaDeviceSynchronize)
  kBlockingCopy,  // its thread waited for its own copy (cudaMemcpy, copies to pageable memory)
  kCollective,    // its thread called a collective that it waits for at once
  kUseOfResult,   // it uses the result of a collective
  kMessage,       // its thread waited for its own send or receive
  kIdleThread,    // its thread did nothing until the other one had ended on another thread
};

// How it is known that a node came after another, the surest first.
enum class Evidence : uint8_t {
  kStated,    // the trace says so: a dependency, an id, an argument, the name of a call
  kByMemory,  // both use the same memory
  kByThread,  // both are on one thread, one behind the other
  kByTime,    // one began when the other had ended: a guess
};

// `node` came after `before`.
struct OrderEdge {
  NodeId node;
  NodeId before;
  OrderReason reason = OrderReason::kData;
  Evidence evidence = Evidence::kStated;
  // `node` is a call that ended only after `before` had, and did nothing but wait for `waited`;
  // else `node` began after it. A label of Gloo's that was waited for may not have ended yet.
  bool in_call = false;
  Nanos waited;

  friend bool operator==(const OrderEdge&, const OrderEdge&) = default;
};

// The reason that stands for a dependency of a trace.
OrderReason ReasonOf(DepKind kind);
// The dependency of a trace that stands for the reason.
DepKind KindOf(OrderReason reason);

}  // namespace etude
