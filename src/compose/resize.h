#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// What a size, as the batch or the length of a sequence, was in two recordings of one program, and
// what it is to be.
struct Resizing {
  int64_t first = 0;
  int64_t second = 0;
  int64_t wanted = 0;

  friend bool operator==(const Resizing&, const Resizing&) = default;
};

// What `first` and `second` are with the first and second size, with the size that is wanted: the
// same if they are the same; else proportional to the size or its square if they are; else what
// lies on the line through both. nullopt if that is no whole number, or negative and they are not.
std::optional<int64_t> CountAt(const Resizing& sizes, int64_t first, int64_t second);
// The same of a number that is no count: if it is proportional or inversely proportional to the
// size.
std::optional<double> NumberAt(const Resizing& sizes, double first, double second);

struct Resized {
  Trace trace;
  int64_t changed = 0;  // nodes whose tensors or numbers have changed
  int64_t kept = 0;     // numbers that differ by no rule and stay as in the first recording
};

// The trace of the program with the size that is wanted, from two recordings with other ones that
// did the same, node by node: every size, stride, count and length of time follows from the two
// (docs/models/resizing.md). Memory and tensors are those of the first. kBadInput, with the node,
// where the recordings differ in more than numbers or a size is no whole number.
Result<Resized> ResizeTrace(const Trace& first, const Trace& second, const Resizing& sizes,
                            const Limits& limits);

}  // namespace etude
