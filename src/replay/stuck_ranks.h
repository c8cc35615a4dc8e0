#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace etude {

// What a rank is at, for the others when one of them gets no further. Communications have channels:
// a group, or the sends or receives between two ranks.
struct RankStatus {
  std::string doing;                     // "in c10d::allreduce_ (node 512) of group '0'"
  std::map<std::string, int64_t> begun;  // by channel: how many it has begun
  // The communication that it is in, if any: it ends when each of these ranks has begun as many on
  // the channel that is named.
  std::vector<int64_t> partners;
  std::string partners_channel;
  int64_t call = 0;
};

// By rank; absent: it says nothing.
using RankStatuses = std::map<int64_t, RankStatus>;

// A line per rank of `present`, with those of them that it waits for; ranks that others wait for
// first.
std::string DescribeRanks(const RankStatuses& all, const std::vector<int64_t>& present);

}  // namespace etude
