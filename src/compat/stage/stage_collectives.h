#pragma once

#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_size.h"
#include "src/trace/words/enums.h"

namespace etude::stage {

using Shape = std::vector<Size>;

// How a tensor lies on one rank: its dimensions there, and those it has been summed over on this
// rank only.
struct Layout {
  Shape shape;
  Shape partial;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// How many elements a rank has of it.
Size Elements(const Shape& shape);

// A collective between the ranks that differ in one kind of parallelism: kDp, kTp, kCp or kEp.
struct Collective {
  CollectiveType type;
  Symbol over;

  friend bool operator==(const Collective&, const Collective&) = default;
};

// What brings a tensor from one layout to the other, one collective for each of `dimensions` in
// their order where one is needed. What each rank can cut out of what it has needs none. kInternal
// if sums are to become partial again, which no model asks for.
Result<std::vector<Collective>> MatchCollectives(const Layout& from, const Layout& to,
                                                 std::span<const Symbol> dimensions);

}  // namespace etude::stage
