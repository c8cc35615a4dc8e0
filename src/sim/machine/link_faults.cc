#include "src/sim/machine/link_faults.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace etude {
namespace {

// Returns the dimension in which a direct link connects two NPUs; nullopt if there is none.
std::optional<size_t> DimOfNeighbours(const SimMachine& machine, int64_t a, int64_t b) {
  std::optional<size_t> found;
  for (size_t i = 0; i < machine.dims.size(); ++i) {
    const NetworkDim& dim = machine.dims[i];
    const int64_t apart = (b % dim.npus - a % dim.npus + dim.npus) % dim.npus;
    a /= dim.npus;
    b /= dim.npus;
    if (apart == 0) continue;
    const bool has_devices =
        dim.shape == NetworkShape::kSwitch || dim.shape == NetworkShape::kGraph;
    if (found || has_devices) return std::nullopt;
    if (dim.shape == NetworkShape::kRing && apart != 1 && apart != dim.npus - 1) {
      return std::nullopt;
    }
    found = i;
  }
  return found;
}

}  // namespace

LinkFaults::LinkFaults(const SimMachine& machine) : dims_(machine.dims) {
  for (const NetworkDim& dim : dims_) {
    strides_.push_back(total_);
    total_ *= dim.npus;
  }
  for (const SlowLink& link : machine.slow_links) {
    if (link.other) {
      const auto dim = DimOfNeighbours(machine, link.npu, *link.other);
      if (dim) Add(*dim, link.npu, *link.other, link);
      continue;
    }
    const NetworkDim& dim = dims_[link.dim];
    const int64_t me = Coordinate(link.npu, link.dim);
    if (dim.shape == NetworkShape::kSwitch) Add(link.dim, link.npu, kSwitch, link);
    for (int64_t i = 0; i < dim.npus; ++i) {
      const int64_t apart = (i - me + dim.npus) % dim.npus;
      const bool neighbour = dim.shape == NetworkShape::kRing
                                 ? apart == 1 || apart == dim.npus - 1
                                 : dim.shape == NetworkShape::kFullyConnected;
      if (apart != 0 && neighbour) Add(link.dim, link.npu, At(link.npu, link.dim, i), link);
    }
  }
}

void LinkFaults::Add(size_t dim, int64_t from, int64_t to, const SlowLink& link) {
  LinkFault& fault = faults_[EndsOf(dim, from, to)];
  fault.share *= link.share;
  fault.latency += link.latency;
}

LinkFault LinkFaults::Of(size_t dim, int64_t from, int64_t to) const {
  const auto found = faults_.find(EndsOf(dim, from, to));
  return found == faults_.end() ? LinkFault{} : found->second;
}

LinkFault LinkFaults::OfWay(size_t dim, int64_t source, int64_t coordinate) const {
  LinkFault all;
  const auto pass = [&](int64_t from, int64_t to) {
    const LinkFault one = Of(dim, from, to);
    all.share = std::min(all.share, one.share);
    all.latency += one.latency;
  };
  const int64_t target = At(source, dim, coordinate);
  const int64_t npus = dims_[dim].npus;
  switch (dims_[dim].shape) {
    case NetworkShape::kGraph: break;
    case NetworkShape::kFullyConnected: pass(source, target); break;
    case NetworkShape::kSwitch:
      pass(source, kSwitch);
      pass(target, kSwitch);
      break;
    case NetworkShape::kRing: {
      const int64_t ahead = (coordinate - Coordinate(source, dim) + npus) % npus;
      const int64_t step = ahead <= npus - ahead ? 1 : npus - 1;
      for (int64_t at = source; at != target;) {
        const int64_t next = At(at, dim, (Coordinate(at, dim) + step) % npus);
        pass(at, next);
        at = next;
      }
    }
  }
  return all;
}

std::vector<std::vector<LinkFaults::Seen>> LinkFaults::SeenByRanks() const {
  std::vector<std::vector<Seen>> all(static_cast<size_t>(total_));
  for (const auto& [ends, fault] : faults_) {
    const auto& [dim, low, high] = ends;
    const int64_t npus = dims_[dim].npus;
    int64_t first = low == kSwitch ? high : low;
    int64_t length = low == kSwitch ? 0 : Coordinate(high, dim) - Coordinate(low, dim);
    if (dims_[dim].shape == NetworkShape::kRing && length != 1) {  // wraps around
      first = high;
      length = 1;
    }
    for (int64_t i = 0; i < npus; ++i) {
      all[static_cast<size_t>(At(first, dim, i))].push_back(
          {.dim = dim,
           .ahead = (Coordinate(first, dim) - i + npus) % npus,
           .length = length,
           .fault = fault});
    }
  }
  // The ends are ordered along their lines, which may differ between two ranks with the same faults
  // around them.
  for (std::vector<Seen>& seen : all) {
    std::ranges::sort(seen, [](const Seen& a, const Seen& b) {
      return std::tie(a.dim, a.ahead, a.length) < std::tie(b.dim, b.ahead, b.length);
    });
  }
  return all;
}

Status CheckFaults(const SimMachine& machine) {
  const int64_t npus = machine.npus();
  const auto is_npu = [&](int64_t npu) { return npu >= 0 && npu < npus; };
  for (const auto& [rank, factor] : machine.stragglers) {
    if (!is_npu(rank)) {
      return BadInput(fmt::format("straggler: found rank {}, expected ranks below {}", rank, npus));
    }
    if (!(factor > 0) || !std::isfinite(factor)) {
      return BadInput(
          fmt::format("straggler {}: found the factor {}, expected one above 0", rank, factor));
    }
  }
  for (const SlowLink& link : machine.slow_links) {
    if (!is_npu(link.npu) || (link.other && !is_npu(*link.other))) {
      return BadInput(fmt::format("slow link: found NPU {}, expected NPUs below {}",
                                  is_npu(link.npu) ? *link.other : link.npu, npus));
    }
    if (link.other && !DimOfNeighbours(machine, link.npu, *link.other)) {
      return BadInput(fmt::format(
          "slow link {}-{}: found no link between them, expected neighbours in a ring or a fully "
          "connected dimension, or {}@0 for the link to the switch of dimension 0",
          link.npu, *link.other, link.npu));
    }
    if (!link.other && link.dim >= machine.dims.size()) {
      return BadInput(fmt::format("slow link {}@{}: expected a dimension below {}", link.npu,
                                  link.dim, machine.dims.size()));
    }
    if (!(link.share > 0) || link.share > 1 || !(link.latency >= 0) ||
        !std::isfinite(link.latency)) {
      return BadInput(
          fmt::format("slow link of NPU {}: found {} of the bandwidth and {} ns, expected a share "
                      "above 0 and up to 1, and 0 ns or more",
                      link.npu, link.share, link.latency));
    }
  }
  return {};
}

}  // namespace etude
