#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// One way in which a job is parallel: "dp", "tp", "pp".
struct MeshAxis {
  std::string name;
  int64_t size = 1;

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Some axes of a mesh: bit i for axis i.
using AxisSet = uint32_t;

// The ranks of a job as points of a grid. Of the axes the first one varies fastest: rank =
// c0 + size0 * (c1 + size1 * (c2 + …)). Ranks and axes given to it are its own. Const methods may
// be called from several threads.
class Mesh {
 public:
  static constexpr size_t kMostAxes = 16;

  // A mesh of one rank.
  Mesh() = default;
  // kBadInput for sizes below 1, names that are empty or occur twice, and too many axes or ranks.
  static Result<Mesh> Make(std::vector<MeshAxis> axes);

  std::span<const MeshAxis> axes() const { return axes_; }
  int64_t size() const { return size_; }
  // How far apart ranks are that are neighbours along `axis`.
  int64_t Stride(size_t axis) const { return strides_[axis]; }
  int64_t Coordinate(int64_t rank, size_t axis) const {
    return rank / strides_[axis] % axes_[axis].size;
  }
  int64_t RankAt(std::span<const int64_t> coordinates) const;
  // The rank `offsets` further along the axes, around their ends. Axes without an offset: 0.
  int64_t Shift(int64_t rank, std::span<const int64_t> offsets) const;

  // Ranks that differ along `axes` only are a group; groups are numbered by their first ranks.
  int64_t GroupSize(AxisSet axes) const;
  int64_t GroupCount(AxisSet axes) const { return size_ / GroupSize(axes); }
  int64_t GroupOf(int64_t rank, AxisSet axes) const;
  // Ascending.
  std::vector<int64_t> GroupRanks(int64_t group, AxisSet axes) const;

  friend bool operator==(const Mesh& a, const Mesh& b) { return a.axes_ == b.axes_; }

 private:
  static bool Has(AxisSet axes, size_t axis) { return ((axes >> axis) & 1) != 0; }

  std::vector<MeshAxis> axes_;
  std::vector<int64_t> strides_;  // by axis
  int64_t size_ = 1;
};

}  // namespace etude
