#include "src/suite/data/jpeg.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#ifdef ETUDE_TURBOJPEG
#include <turbojpeg.h>
#endif

#include "src/formats/io/byte_source.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
#ifdef ETUDE_TURBOJPEG
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28;
constexpr int kMostReduced = 8;  // the decoder's largest divisor

struct CloseHandle {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, CloseHandle>;

struct FreeBytes {
  void operator()(unsigned char* bytes) const { tjFree(bytes); }
};

at::Tensor FromPixels(const std::vector<unsigned char>& pixels, int height, int width) {
  std::vector<float> values(pixels.size());
  const size_t plane = values.size() / 3;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i % 3 * plane + i / 3] = static_cast<float>(pixels[i]) / 255.0F;
  }
  return FromValues(values, {3, height, width});
}

// Returns the size of the parts of a JPEG file before its compressed pixels. Parts begin with a
// marker of two bytes and their length; the last one is marked as the start of a scan.
size_t HeaderBytes(std::string_view file) {
  constexpr uint8_t kStartOfScan = 0xDA;
  size_t at = 2;
  while (at + 4 <= file.size()) {
    const auto marker = static_cast<uint8_t>(file[at + 1]);
    at += 2 + (static_cast<size_t>(static_cast<uint8_t>(file[at + 2])) << 8 |
               static_cast<uint8_t>(file[at + 3]));
    if (marker == kStartOfScan) break;
  }
  return std::min(at, file.size());
}

// Decodes at a scale that `scale_of` returns for height and width.
template <typename ScaleOf>
Result<at::Tensor> Decode(std::string_view bytes, const std::string& place,
                          const ScaleOf& scale_of) {
  const Handle decoder(tjInitDecompress());
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  const auto wrong = [&] {
    return BadInput(
        fmt::format("{}: {}, expected a JPEG image", place, tjGetErrorStr2(decoder.get())));
  };
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling,
                          &colours) != 0) {
    return wrong();
  }
  if (int64_t{width} * height > kMostPixels) {
    return BadInput(fmt::format("{}: found {} × {} pixels, expected fewer", place, width, height));
  }
  const tjscalingfactor scale = scale_of(height, width);
  height = TJSCALED(height, scale);
  width = TJSCALED(width, scale);
  std::vector<unsigned char> pixels(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  // Warnings, such as missing bytes at the end, are errors too.
  if (tjDecompress2(decoder.get(), data, bytes.size(), pixels.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0) {
    return wrong();
  }
  return FromPixels(pixels, height, width);
}

}  // namespace

Result<JpegCopy> CopyByJpeg(const at::Tensor& picture, int quality) {
  const auto height = static_cast<int>(picture.size(1));
  const auto width = static_cast<int>(picture.size(2));
  const at::Tensor values =
      (picture.permute({1, 2, 0}) * 255).round().clamp(0, 255).to(at::kByte).contiguous();
  const Handle encoder(tjInitCompress());
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(encoder.get(), values.const_data_ptr<uint8_t>(), width, 0, height,
                                 TJPF_RGB, &made, &size, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, FreeBytes> file(made);
  if (failed != 0) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("compressing by JPEG: {}", tjGetErrorStr2(encoder.get())));
  }
  const Handle decoder(tjInitDecompress());
  std::vector<unsigned char> pixels(static_cast<size_t>(values.numel()));
  if (tjDecompress2(decoder.get(), file.get(), size, pixels.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("decompressing by JPEG: {}", tjGetErrorStr2(decoder.get())));
  }
  const size_t header = HeaderBytes({reinterpret_cast<const char*>(file.get()), size});
  return JpegCopy{FromPixels(pixels, height, width), static_cast<int64_t>(size - header)};
}

Result<at::Tensor> ReadJpeg(const std::string& path, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, context.limits));
  return Decode(bytes, path, [](int, int) { return tjscalingfactor{1, 1}; });
}

Result<at::Tensor> DecodeJpeg(std::string_view bytes, const std::string& place,
                              int64_t least_side) {
  return Decode(bytes, place, [&](int height, int width) {
    int divisor = 1;
    while (divisor < kMostReduced && std::min(height, width) / (2 * divisor) >= least_side) {
      divisor *= 2;
    }
    return tjscalingfactor{1, divisor};
  });
}
#else
Result<JpegCopy> CopyByJpeg(const at::Tensor&, int) {
  return Unavailable("compressing by JPEG requires a build with libturbojpeg");
}

namespace {

tl::unexpected<Error> NotInThisBuild(const std::string& place) {
  return Unavailable(place + ": reading JPEG requires a build with libturbojpeg");
}

}  // namespace

Result<at::Tensor> ReadJpeg(const std::string& path, const RunContext&) {
  return NotInThisBuild(path);
}
Result<at::Tensor> DecodeJpeg(std::string_view, const std::string& place, int64_t) {
  return NotInThisBuild(place);
}
#endif

at::Tensor CropTo(const at::Tensor& picture, int64_t top, int64_t left, int64_t height,
                  int64_t width, int64_t side) {
  const at::Tensor part = picture.narrow(1, top, height).narrow(2, left, width).unsqueeze(0);
  return Resize(part, side, side).squeeze(0);
}

at::Tensor ImageNetNormalised(const at::Tensor& pictures) {
  const std::vector<float> mean = {0.485F, 0.456F, 0.406F};
  const std::vector<float> deviation = {0.229F, 0.224F, 0.225F};
  return (pictures - FromValues(mean, {3, 1, 1})) / FromValues(deviation, {3, 1, 1});
}

}  // namespace etude::suite
