#pragma once

#include <cstdint>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Value of one size of a program, such as its batch, in two recordings and in a wanted one.
struct SizePoints {
  double first = 0;
  double second = 0;
  double wanted = 0;
};

struct SizeEdit {
  Trace trace;
  uint64_t resized = 0;          // operators whose tensors or numbers have other sizes
  uint64_t retimed = 0;          // nodes whose time follows from their work
  std::vector<bool> is_retimed;  // by node: whether it is one of them
};

// Returns the recorded step `first` for another value of a size, by `second`, a recording of the
// same program with one other value.
//
// The n-th operator of a thread, and the n-th work of a stream, is the same in both. Sizes of
// tensors and whole numbers among arguments are linear in the value. Times of operators with other
// sizes are linear in their work (OperatorCost: operations of matrix products, bytes of all others)
// through the medians of equal operators in both recordings. All other times stay.
// docs/models/what_if.md.
//
// More work takes no less time, and less work at most in proportion less.
//
// kBadInput, with the place, if the recordings have different outermost operators, or if most sizes
// would be no whole numbers. Single ones, and those inside of another operator, become unknown.
// Times of operators that are called in one of the recordings only stay.
Result<SizeEdit> AtOtherSize(const Trace& first, const Trace& second, const SizePoints& points,
                             const Limits& limits);

}  // namespace etude
