#include "src/trace/job/mesh.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/trace/job/rank_set.h"

namespace etude {

Result<Mesh> Mesh::Make(std::vector<MeshAxis> axes) {
  if (axes.size() > kMostAxes) {
    return BadInput(
        fmt::format("found a mesh of {} axes, expected at most {}", axes.size(), kMostAxes));
  }
  Mesh mesh;
  for (const MeshAxis& axis : axes) {
    if (axis.name.empty() || std::ranges::count(axes, axis.name, &MeshAxis::name) != 1) {
      return BadInput(
          fmt::format("found axis '{}', expected names of axes that differ", axis.name));
    }
    if (axis.size < 1) {
      return BadInput(
          fmt::format("found axis '{}' of {} ranks, expected 1 or more", axis.name, axis.size));
    }
    mesh.strides_.push_back(mesh.size_);
    if (__builtin_mul_overflow(mesh.size_, axis.size, &mesh.size_) ||
        mesh.size_ > kMostRanksOfJob) {
      return BadInput(fmt::format("found a mesh of more than {} ranks", kMostRanksOfJob));
    }
  }
  mesh.axes_ = std::move(axes);
  return mesh;
}

int64_t Mesh::RankAt(std::span<const int64_t> coordinates) const {
  int64_t rank = 0;
  for (size_t i = 0; i < axes_.size(); ++i) rank += coordinates[i] * strides_[i];
  return rank;
}

int64_t Mesh::Shift(int64_t rank, std::span<const int64_t> offsets) const {
  int64_t shifted = rank;
  for (size_t i = 0; i < offsets.size() && i < axes_.size(); ++i) {
    const int64_t size = axes_[i].size;
    const int64_t from = Coordinate(rank, i);
    const int64_t to = ((from + offsets[i] % size) % size + size) % size;
    shifted += (to - from) * strides_[i];
  }
  return shifted;
}

int64_t Mesh::GroupSize(AxisSet axes) const {
  int64_t size = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (Has(axes, i)) size *= axes_[i].size;
  }
  return size;
}

int64_t Mesh::GroupOf(int64_t rank, AxisSet axes) const {
  int64_t group = 0;
  int64_t stride = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (Has(axes, i)) continue;
    group += Coordinate(rank, i) * stride;
    stride *= axes_[i].size;
  }
  return group;
}

std::vector<int64_t> Mesh::GroupRanks(int64_t group, AxisSet axes) const {
  int64_t first = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (Has(axes, i)) continue;
    first += group % axes_[i].size * strides_[i];
    group /= axes_[i].size;
  }
  std::vector<int64_t> ranks = {first};
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!Has(axes, i)) continue;
    const size_t inner = ranks.size();
    for (int64_t c = 1; c < axes_[i].size; ++c) {
      for (size_t k = 0; k < inner; ++k) ranks.push_back(ranks[k] + c * strides_[i]);
    }
  }
  return ranks;
}

}  // namespace etude
