#pragma once

#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_size.h"
#include "src/trace/words/enums.h"

namespace etude::stage {

using Shape = std::vector<Size>;

// Layout of a tensor on one rank: its local dimensions, and the dimensions over which its sums are
// partial.
struct Layout {
  Shape shape;
  Shape partial;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Returns the number of elements on a rank.
Size Elements(const Shape& shape);

// A collective between the ranks that differ in one kind of parallelism: kDp, kTp, kCp or kEp.
struct Collective {
  CollectiveType type;
  Symbol over;

  friend bool operator==(const Collective&, const Collective&) = default;
};

// Returns the collectives that convert a tensor from one layout to another, in the order of
// `dimensions`; at most one per dimension. Slicing local data needs no collective. kInternal if
// complete sums would become partial, which no model does.
Result<std::vector<Collective>> MatchCollectives(const Layout& from, const Layout& to,
                                                 std::span<const Symbol> dimensions);

}  // namespace etude::stage
