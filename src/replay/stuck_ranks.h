#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace etude {

// Progress of a rank, for the diagnosis of a deadlock. Communications have channels: a group, or
// the sends or receives between two ranks.
struct RankStatus {
  std::string doing;                     // "in c10d::allreduce_ (node 512) of group '0'"
  std::map<std::string, int64_t> begun;  // communications begun, by channel
  // Current communication, if any. It ends when each of these ranks has begun `call` communications
  // on `partners_channel`.
  std::vector<int64_t> partners;
  std::string partners_channel;
  int64_t call = 0;
};

// By rank; ranks without a status are absent.
using RankStatuses = std::map<int64_t, RankStatus>;

// Returns a line per rank of `present`, with the ranks of `present` that it waits for. Ranks that
// others wait for come first.
std::string DescribeRanks(const RankStatuses& all, const std::vector<int64_t>& present);

}  // namespace etude
