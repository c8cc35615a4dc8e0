#pragma once

#include <map>
#include <span>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Which calls of the host one piece of device work carried together. Inside PyTorch's
// batch_isend_irecv the calls launch nothing; the label "nccl:coalesced" that follows on their
// thread launches one kernel for all of them, which says nothing of what it does. O(n), and
// O(n log n) where there are such kernels.
class CarriedCalls {
 public:
  explicit CarriedCalls(const Trace& trace);

  // Whether `work` carried calls that are known.
  bool IsCarrier(NodeId work) const { return calls_of_.contains(work); }
  // In the order of the thread; none of what carried nothing that is known.
  std::span<const NodeId> CallsOf(NodeId work) const {
    const auto found = calls_of_.find(work);
    return found == calls_of_.end() ? std::span<const NodeId>() : std::span(found->second);
  }
  // What carried `call`; kNone: it went out alone, or that is not known.
  NodeId CarrierOf(NodeId call) const {
    const auto found = carrier_of_.find(call);
    return found == carrier_of_.end() ? NodeId::None() : found->second;
  }

 private:
  std::map<NodeId, NodeId> carrier_of_;
  std::map<NodeId, std::vector<NodeId>> calls_of_;
};

}  // namespace etude
