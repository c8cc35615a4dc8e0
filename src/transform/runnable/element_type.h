#pragma once

#include <array>
#include <cstdint>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Floating-point types that a change of the element type replaces, and that it can choose.
inline constexpr auto kElementTypes =
    std::to_array({DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64});

struct TypeChange {
  uint64_t collectives = 0;  // with other bytes; sends and receives included
  uint64_t retimed = 0;      // nodes with times by their bytes
  uint64_t products = 0;     // of matrices, and others of unknown bytes: their times stay
};

// Changes the element type of all floating-point tensors of a rank made of `trace`. Bytes of
// communication change with the size of an element. Work of operators that move data takes
//   fixed + (time - fixed) * bytes after / bytes before
// with the operator's input and output bytes, and the median time of those of at most 4 KiB as
// fixed; shorter ones keep their times. Matrix products keep theirs: they depend on the device's
// units for the type.
//
// kBadInput if no tensor has another floating-point type.
Result<TypeChange> ChangeElementType(const Trace& trace, DType type, RunnableRank& rank);

}  // namespace etude
