#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Fault of a link, or of all links of a route.
struct LinkFault {
  double share = 1;    // remaining share of the bandwidth
  double latency = 0;  // additional, ns

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// Slow links of a machine, by their ends.
class LinkFaults {
 public:
  static constexpr int64_t kSwitch = -1;  // other end of a link in a switched dimension

  explicit LinkFaults(const SimMachine& machine);

  bool empty() const { return faults_.empty(); }
  // Returns the fault of a link, in either direction.
  LinkFault Of(size_t dim, int64_t from, int64_t to) const;
  // Returns the combined fault of the route from `source` to the NPU with another coordinate in
  // `dim`: the minimum share, and the sum of latencies.
  LinkFault OfWay(size_t dim, int64_t source, int64_t coordinate) const;

  // A fault relative to a rank on the same line.
  struct Seen {
    size_t dim = 0;
    int64_t ahead = 0;   // steps from the rank to the link's first end
    int64_t length = 0;  // steps from the first to the second end; 0: the switch
    LinkFault fault;
  };
  // Returns the faults seen by each rank, in a consistent order.
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

// Checks the faults. kBadInput for slow links that the network lacks, and for stragglers that are
// not ranks.
Status CheckFaults(const SimMachine& machine);

}  // namespace etude
