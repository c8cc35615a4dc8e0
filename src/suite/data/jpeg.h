#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Reads a JPEG file: float [3, H, W], red, green, blue, from 0 to 1. kBadInput for an invalid or
// damaged file.
Result<at::Tensor> ReadJpeg(const std::string& path, const RunContext& context);
// Decodes a JPEG image like ReadJpeg, reduced by 2, 4 or 8 as long as no side becomes shorter than
// `least_side`, which takes less time. `place` is used in messages.
Result<at::Tensor> DecodeJpeg(std::string_view bytes, const std::string& place, int64_t least_side);

// A picture that was compressed and decompressed.
struct JpegCopy {
  at::Tensor picture;  // like the original
  int64_t bytes = 0;   // of the compressed pixels, without the headers before them
};
// Compresses `picture`, as from ReadJpeg, with half as many rows and columns of colour and a
// `quality` from 1 to 100. kUnavailable without libturbojpeg.
Result<JpegCopy> CopyByJpeg(const at::Tensor& picture, int quality);

// Returns the part of `picture` from (top, left), `height` × `width` pixels, resized to `side` ×
// `side`.
at::Tensor CropTo(const at::Tensor& picture, int64_t top, int64_t left, int64_t height,
                  int64_t width, int64_t side);

// Normalises `pictures`, [3, H, W] or [N, 3, H, W], by the means and deviations of ImageNet's
// colours.
at::Tensor ImageNetNormalised(const at::Tensor& pictures);

}  // namespace etude::suite
