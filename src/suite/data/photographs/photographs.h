#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Colour pictures of different sizes, [3, H, W] with values from 0 to 1, ordered by file name.
struct Photographs {
  std::vector<at::Tensor> train;
  std::vector<at::Tensor> test;
};

// Reads the idx files (rows, columns, 3 colours) in `folder`/photographs/train and …/test.
// kUnavailable, with instructions, if they are missing; kBadInput for an invalid file, or one whose
// sides are shorter than `least_train` or `least_test`.
Result<Photographs> ReadPhotographs(const std::string& folder, int64_t least_train,
                                    int64_t least_test, const RunContext& context);

}  // namespace etude::suite
