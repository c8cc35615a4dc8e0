#pragma once

#include <string>
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
  // kBadInput without NcclMachine::messages: NCCL has no times of messages.
  Result<CommunicationTime> TimeOfMessage(int64_t from, int64_t to, int64_t bytes) const override;

 private:
  explicit NcclTimes(NcclMachine machine) : machine_(std::move(machine)) {}

  int64_t NodeOf(int64_t rank) const { return rank / machine_.gpus_per_node; }
  // Returns the time of messages of a rank that are transferred at once, to others in its node and
  // in other nodes. `what`: in an error.
  Result<CommunicationTime> TimeOfMessages(double within, double between,
                                           const std::string& what) const;
  // Returns the time of a collective that consists of messages.
  Result<CommunicationTime> TimeByMessages(CollectiveType type, std::span<const int64_t> ranks,
                                           int64_t bytes) const;
  // Returns the number of the group's nodes.
  Result<int64_t> NodesOf(std::span<const int64_t> ranks) const;

  NcclMachine machine_;
};

}  // namespace etude
