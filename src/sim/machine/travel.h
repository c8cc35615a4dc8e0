#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/sim/machine/link_faults.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Rounds down to whole ns. Times above 1e17 ns (three years) become 1e17.
inline int64_t WholeNanos(double time) {
  constexpr double kMost = 1e17;
  return static_cast<int64_t>(time < kMost ? time : kMost);
}

// Routes through a network without queues. As in ASTRA-sim, only the lowest dimension in which two
// NPUs differ counts.
class Travel {
 public:
  struct Way {
    size_t dim = 0;
    int64_t hops = 0;  // 0: source and target are equal
    LinkFault fault;

    friend bool operator==(const Way&, const Way&) = default;
  };

  explicit Travel(const SimMachine& machine) : machine_(machine), faults_(machine) {
    for (const NetworkDim& dim : machine.dims) {
      strides_.push_back(total_);
      total_ *= dim.npus;
      bytes_per_ns_.push_back(dim.bandwidth * 1073741824.0 / 1e9);
    }
  }

  int64_t total() const { return total_; }
  int64_t Stride(size_t dim) const { return strides_[dim]; }
  int64_t Coordinate(int64_t rank, size_t dim) const {
    return rank / strides_[dim] % machine_.dims[dim].npus;
  }
  double BytesPerNano(size_t dim) const { return bytes_per_ns_[dim]; }
  const LinkFaults& faults() const { return faults_; }

  Way WayOf(int64_t source, int64_t target) const {
    for (size_t i = 0; i < strides_.size(); ++i) {
      const int64_t from = Coordinate(source, i);
      const int64_t to = Coordinate(target, i);
      if (from == to) continue;
      Way way{.dim = i, .hops = HopsOf(machine_.dims[i], from, to)};
      if (!faults_.empty()) way.fault = faults_.OfWay(i, source, to);
      return way;
    }
    return {};
  }
  int64_t Time(Way way, int64_t bytes) const {
    if (way.hops == 0) return 0;
    const double latency = static_cast<double>(way.hops) * machine_.dims[way.dim].latency;
    return WholeNanos(latency + way.fault.latency +
                      static_cast<double>(bytes) / (bytes_per_ns_[way.dim] * way.fault.share));
  }

  // Time of a message on links without faults or other messages, in ns.
  struct Parts {
    int64_t latency = 0;
    int64_t transfer = 0;  // bytes / bandwidth
  };
  Parts PartsOf(Way way, int64_t bytes) const {
    // Links of a network with congestion take in all of a message before they send it on.
    const int64_t times = machine_.congestion ? way.hops : std::min<int64_t>(way.hops, 1);
    const double hops = static_cast<double>(machine_.congestion ? 1 : way.hops);
    const double load = static_cast<double>(bytes) / bytes_per_ns_[way.dim];
    const int64_t transfer = WholeNanos(load);
    const int64_t both = WholeNanos(hops * machine_.dims[way.dim].latency + load);
    return {.latency = times * (both - transfer), .transfer = times * transfer};
  }

 private:
  static int64_t HopsOf(const NetworkDim& dim, int64_t from, int64_t to) {
    if (dim.shape == NetworkShape::kFullyConnected) return 1;
    if (dim.shape == NetworkShape::kSwitch) return 2;
    if (dim.shape == NetworkShape::kGraph) return 1;
    const int64_t ahead = (to - from + dim.npus) % dim.npus;
    return std::min(ahead, dim.npus - ahead);
  }

  const SimMachine& machine_;
  const LinkFaults faults_;
  std::vector<int64_t> strides_;
  std::vector<double> bytes_per_ns_;
  int64_t total_ = 1;
};

}  // namespace etude
