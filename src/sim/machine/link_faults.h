#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// What is wrong with a link, or with all links of a way.
struct LinkFault {
  double share = 1;    // of the bandwidth that is left
  double latency = 0;  // ns more

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// The slow links of a machine by their ends.
class LinkFaults {
 public:
  static constexpr int64_t kSwitch = -1;  // the other end of a link of a switched dimension

  explicit LinkFaults(const SimMachine& machine);

  bool empty() const { return faults_.empty(); }
  // Of a link, in either direction.
  LinkFault Of(size_t dim, int64_t from, int64_t to) const;
  // Of the way on which messages go from `source` to the NPU with another coordinate in `dim`: the
  // least share, and all latencies.
  LinkFault OfWay(size_t dim, int64_t source, int64_t coordinate) const;

  // A fault as a rank sees it that is on one line with it.
  struct Seen {
    size_t dim = 0;
    int64_t ahead = 0;   // steps from the rank to the link's first end
    int64_t length = 0;  // and from there to its other one; 0: to the switch
    LinkFault fault;
  };
  // For each rank, in one order.
  std::vector<std::vector<Seen>> SeenByRanks() const;

 private:
  using Ends = std::tuple<size_t, int64_t, int64_t>;  // dimension, lower NPU or kSwitch, other NPU

  static Ends EndsOf(size_t dim, int64_t from, int64_t to) {
    return {dim, std::min(from, to), std::max(from, to)};
  }
  int64_t Coordinate(int64_t npu, size_t dim) const {
    return npu / strides_[dim] % dims_[dim].npus;
  }
  int64_t At(int64_t npu, size_t dim, int64_t coordinate) const {
    return npu + (coordinate - Coordinate(npu, dim)) * strides_[dim];
  }
  void Add(size_t dim, int64_t from, int64_t to, const SlowLink& link);

  std::vector<NetworkDim> dims_;
  std::vector<int64_t> strides_;
  int64_t total_ = 1;
  std::map<Ends, LinkFault> faults_;
};

// kBadInput for slow links that are none of the network's, and for stragglers that are no ranks.
Status CheckFaults(const SimMachine& machine);

}  // namespace etude
