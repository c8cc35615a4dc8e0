#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// A size, such as the batch or the length of a sequence, in two recordings of one program, and its
// wanted value.
struct Resizing {
  int64_t first = 0;
  int64_t second = 0;
  int64_t wanted = 0;

  friend bool operator==(const Resizing&, const Resizing&) = default;
};

// Returns the count for the wanted size, given `first` and `second` for the first and second size:
// constant if they are equal; else proportional to the size or its square if they are; else on the
// line through both. nullopt if that is not a whole number, or is negative although they are not.
std::optional<int64_t> CountAt(const Resizing& sizes, int64_t first, int64_t second);
// Returns the value of a number that is not a count, if it is proportional or inversely
// proportional to the size.
std::optional<double> NumberAt(const Resizing& sizes, double first, double second);

struct Resized {
  Trace trace;
  int64_t changed = 0;  // nodes whose tensors or numbers have changed
  int64_t kept = 0;     // numbers that follow no rule and keep the value of the first recording
};

// Returns the program's trace for the wanted size, from two recordings with other sizes and the
// same nodes: every size, stride, count and duration is derived from the two
// (docs/models/resizing.md). Memory and tensors are those of the first. kBadInput, with the node,
// if the recordings differ in more than numbers or a size is not a whole number.
Result<Resized> ResizeTrace(const Trace& first, const Trace& second, const Resizing& sizes,
                            const Limits& limits);

}  // namespace etude
