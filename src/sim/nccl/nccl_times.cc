#include "src/sim/nccl/nccl_times.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "src/sim/nccl/nccl_choice.h"

namespace etude {

Result<NcclTimes> NcclTimes::Create(NcclMachine machine) {
  if (machine.gpus_per_node < 1) {
    return BadInput(fmt::format("nccl-2.30: found {} GPUs per node, expected at least 1",
                                machine.gpus_per_node));
  }
  return NcclTimes(std::move(machine));
}

Result<int64_t> NcclTimes::NodesOf(std::span<const int64_t> ranks) const {
  std::map<int64_t, int64_t> gpus;  // of the group, by node
  for (const int64_t rank : ranks) {
    if (rank < 0) return BadInput(fmt::format("nccl-2.30: found rank {}", rank));
    ++gpus[rank / machine_.gpus_per_node];
  }
  if (gpus.empty()) return BadInput("nccl-2.30: found a group without ranks");
  for (const auto& [node, count] : gpus) {
    if (count == gpus.begin()->second) continue;
    return BadInput(fmt::format(
        "unknown time by nccl-2.30: a group with {} ranks on node {} and {} on node {}; known: "
        "groups with as many ranks on each node",
        gpus.begin()->second, gpus.begin()->first, count, node));
  }
  return static_cast<int64_t>(gpus.size());
}

Result<CommunicationTime> NcclTimes::TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                            int64_t bytes) const {
  ETUDE_ASSIGN_OR_RETURN(const int64_t nodes, NodesOf(ranks));
  ETUDE_ASSIGN_OR_RETURN(const NcclChoice choice,
                         ChooseNccl(machine_, {.type = type,
                                               .ranks = static_cast<int64_t>(ranks.size()),
                                               .nodes = nodes,
                                               .bytes = bytes}));
  return CommunicationTime{
      .nanos = std::llround(static_cast<double>(choice.micros) * 1000),
      .how = fmt::format("{} {}", NameOf(choice.algorithm), NameOf(choice.protocol))};
}

Result<CommunicationTime> NcclTimes::TimeOfMessage(int64_t from, int64_t to, int64_t bytes) const {
  return BadInput(fmt::format(
      "unknown time by nccl-2.30: a message of {} bytes from rank {} to {}; NCCL has times of "
      "collectives only",
      bytes, from, to));
}

}  // namespace etude
