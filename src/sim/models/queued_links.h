#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/sim/machine/link_faults.h"
#include "src/sim/machine/machine.h"

namespace etude {

// The links of a network with congestion, by number. Each has one direction. The network has one
// dimension: a ring, links between each two NPUs, or a switch. The switch is the device after the
// last NPU.
class QueuedLinks {
 public:
  explicit QueuedLinks(const SimMachine& machine)
      : shape_(machine.dims[0].shape), npus_(machine.dims[0].npus) {}

  size_t count() const {
    const auto npus = static_cast<size_t>(npus_);
    return shape_ == NetworkShape::kFullyConnected ? npus * npus : 2 * npus;
  }
  struct Step {
    uint32_t link = 0;
    int64_t next = 0;  // device at its other end
  };
  // Returns the next step of a message at the device `at`. Requires `at` != `to`.
  Step Next(int64_t at, int64_t from, int64_t to) const {
    switch (shape_) {
      case NetworkShape::kFullyConnected: return {Number(from * npus_ + to), to};
      case NetworkShape::kSwitch:
        if (at == npus_) return {Number(npus_ + to), to};
        return {Number(from), npus_};
      case NetworkShape::kGraph:
      case NetworkShape::kRing: break;
    }
    const int64_t ahead = (to + npus_ - from) % npus_;
    if (ahead <= npus_ - ahead) return {Number(at), (at + 1) % npus_};
    return {Number(npus_ + at), (at + npus_ - 1) % npus_};
  }
  // Returns the devices at both ends.
  std::pair<int64_t, int64_t> EndsOf(uint32_t link) const {
    const auto number = static_cast<int64_t>(link);
    switch (shape_) {
      case NetworkShape::kFullyConnected: return {number / npus_, number % npus_};
      case NetworkShape::kSwitch:
        if (number < npus_) return {number, npus_};
        return {npus_, number - npus_};
      case NetworkShape::kGraph:
      case NetworkShape::kRing: break;
    }
    if (number < npus_) return {number, (number + 1) % npus_};
    const int64_t from = number - npus_;
    return {from, (from + npus_ - 1) % npus_};
  }
  // Returns the NPU at the beginning of the link; for a link from the switch the one at its end.
  int64_t OwnerOf(uint32_t link) const {
    const auto [from, to] = EndsOf(link);
    return from == npus_ ? to : from;
  }
  LinkFault FaultOf(uint32_t link, const LinkFaults& faults) const {
    if (shape_ == NetworkShape::kSwitch) return faults.Of(0, OwnerOf(link), LinkFaults::kSwitch);
    const auto [from, to] = EndsOf(link);
    return faults.Of(0, from, to);
  }

 private:
  static uint32_t Number(int64_t link) { return static_cast<uint32_t>(link); }

  const NetworkShape shape_;
  const int64_t npus_;
};

}  // namespace etude
