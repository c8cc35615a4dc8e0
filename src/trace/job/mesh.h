#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Dimension of parallelism of a job: "dp", "tp", "pp".
struct MeshAxis {
  std::string name;
  int64_t size = 1;

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Set of axes of a mesh: bit i for axis i.
using AxisSet = uint32_t;

// Ranks of a job as points of a grid. The first axis varies fastest: rank = c0 + size0 * (c1 +
// size1 * (c2 + …)). Ranks and axes passed to methods must belong to the mesh. Const methods are
// thread-safe.
class Mesh {
 public:
  static constexpr size_t kMostAxes = 16;

  // Makes a mesh of one rank.
  Mesh() = default;
  // Makes a mesh. kBadInput for sizes below 1, empty or duplicate names, and too many axes or
  // ranks.
  static Result<Mesh> Make(std::vector<MeshAxis> axes);

  std::span<const MeshAxis> axes() const { return axes_; }
  int64_t size() const { return size_; }
  // Returns the distance in ranks between neighbours along `axis`.
  int64_t Stride(size_t axis) const { return strides_[axis]; }
  int64_t Coordinate(int64_t rank, size_t axis) const {
    return rank / strides_[axis] % axes_[axis].size;
  }
  int64_t RankAt(std::span<const int64_t> coordinates) const;
  // Returns the rank `offsets` further along the axes, wrapping around. Missing offsets are 0.
  int64_t Shift(int64_t rank, std::span<const int64_t> offsets) const;

  // A group is the set of ranks that differ only along `axes`; groups are numbered by their first
  // ranks.
  int64_t GroupSize(AxisSet axes) const;
  int64_t GroupCount(AxisSet axes) const { return size_ / GroupSize(axes); }
  int64_t GroupOf(int64_t rank, AxisSet axes) const;
  // Returns the ranks of a group, ascending.
  std::vector<int64_t> GroupRanks(int64_t group, AxisSet axes) const;

  friend bool operator==(const Mesh& a, const Mesh& b) { return a.axes_ == b.axes_; }

 private:
  static bool Has(AxisSet axes, size_t axis) { return ((axes >> axis) & 1) != 0; }

  std::vector<MeshAxis> axes_;
  std::vector<int64_t> strides_;  // by axis
  int64_t size_ = 1;
};

}  // namespace etude
