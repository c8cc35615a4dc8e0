#include "src/sim/nccl/nccl_times.h"

#include <algorithm>
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

Result<CommunicationTime> NcclTimes::TimeOfMessages(double within, double between,
                                                    const std::string& what) const {
  const auto unknown = [&](std::string_view which) {
    return BadInput(fmt::format(
        "unknown time by nccl-2.30: {}; NCCL has no times of messages, expected {} in the machine "
        "file",
        what, which));
  };
  if (!machine_.messages) return unknown("[nccl.messages]");
  double micros = 0;
  const auto add = [&](const NcclLink& link, double bytes) {
    if (bytes >= 0) micros = std::max(micros, link.latency + bytes / (link.bandwidth * 1e3));
  };
  add(machine_.messages->within, within);
  if (between >= 0) {
    if (!machine_.messages->between) return unknown("'between' in [nccl.messages]");
    add(*machine_.messages->between, between);
  }
  return CommunicationTime{.nanos = std::llround(micros * 1000), .how = "messages"};
}

Result<CommunicationTime> NcclTimes::TimeByMessages(CollectiveType type,
                                                    std::span<const int64_t> ranks,
                                                    int64_t bytes) const {
  // The largest number of members of a node, and of those in other nodes, for a member.
  std::map<int64_t, int64_t> gpus;
  for (const int64_t rank : ranks) ++gpus[NodeOf(rank)];
  int64_t most = 0;
  int64_t fewest = std::ssize(ranks);
  for (const auto& [node, count] : gpus) {
    most = std::max(most, count);
    fewest = std::min(fewest, count);
  }
  // Each member of a gather gives all its input; otherwise each gets a part.
  const double part = type == CollectiveType::kGather
                          ? static_cast<double>(bytes)
                          : static_cast<double>(bytes) / static_cast<double>(ranks.size());
  const auto of = [&](int64_t members) {
    return members > 0 ? part * static_cast<double>(members) : -1.0;
  };
  return TimeOfMessages(of(most - 1), of(std::ssize(ranks) - fewest),
                        fmt::format("{} of {} ranks", Name(type), ranks.size()));
}

Result<CommunicationTime> NcclTimes::TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                            int64_t bytes) const {
  const bool is_of_messages = type == CollectiveType::kAllToAll ||
                              type == CollectiveType::kGather || type == CollectiveType::kScatter;
  if (is_of_messages) return TimeByMessages(type, ranks, bytes);
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
  const bool is_within = NodeOf(from) == NodeOf(to);
  const auto size = static_cast<double>(bytes);
  return TimeOfMessages(is_within ? size : -1.0, is_within ? -1.0 : size,
                        fmt::format("a message of {} bytes from rank {} to {}", bytes, from, to));
}

}  // namespace etude
