#pragma once

#include <utility>

#include "src/sim/machine/collective_times.h"
#include "src/sim/nccl/nccl_machine.h"

namespace etude {

// Times of collectives by the cost model with which NCCL 2.30 chooses its algorithms
// (docs/models/nccl.md). Ranks are placed on nodes in blocks: rank r is on node r / gpus_per_node.
// Thread-safe.
class NcclTimes : public CollectiveTimes {
 public:
  // kBadInput without GPUs of a node.
  static Result<NcclTimes> Create(NcclMachine machine);

  std::string_view name() const override { return "nccl-2.30"; }
  const NcclMachine& machine() const { return machine_; }
  Result<CommunicationTime> TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                   int64_t bytes) const override;
  // Always kBadInput: NCCL has no times of messages.
  Result<CommunicationTime> TimeOfMessage(int64_t from, int64_t to, int64_t bytes) const override;

 private:
  explicit NcclTimes(NcclMachine machine) : machine_(std::move(machine)) {}

  // Returns the number of the group's nodes.
  Result<int64_t> NodesOf(std::span<const int64_t> ranks) const;

  NcclMachine machine_;
};

}  // namespace etude
