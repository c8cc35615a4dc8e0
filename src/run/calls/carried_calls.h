#pragma once

#include <map>
#include <span>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Host calls that one piece of device work carried together. Inside PyTorch's batch_isend_irecv the
// calls launch nothing; the label "nccl:coalesced" that follows on their thread launches one kernel
// for all of them, without information on what it does. O(n), or O(n log n) with such kernels.
class CarriedCalls {
 public:
  explicit CarriedCalls(const Trace& trace);

  // Returns true if `work` carried known calls.
  bool IsCarrier(NodeId work) const { return calls_of_.contains(work); }
  // Returns the calls carried by `work`, in thread order; empty if none are known.
  std::span<const NodeId> CallsOf(NodeId work) const {
    const auto found = calls_of_.find(work);
    return found == calls_of_.end() ? std::span<const NodeId>() : std::span(found->second);
  }
  // Returns the work that carried `call`; kNone if it was launched alone, or unknown.
  NodeId CarrierOf(NodeId call) const {
    const auto found = carrier_of_.find(call);
    return found == carrier_of_.end() ? NodeId::None() : found->second;
  }

 private:
  std::map<NodeId, NodeId> carrier_of_;
  std::map<NodeId, std::vector<NodeId>> calls_of_;
};

}  // namespace etude
