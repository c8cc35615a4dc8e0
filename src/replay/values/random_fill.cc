#include "src/replay/values/random_fill.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <numeric>
#include <vector>

#include "src/base/random_stream.h"
#include "src/base/zipf_ranks.h"

namespace etude {
namespace {

// Fills `out` with results of `make`, and beyond one block with copies of the first block.
template <typename Make>
void FillRepeating(std::span<float> out, Make make) {
  const size_t first = std::min(out.size(), kRepeatedFloats);
  for (size_t i = 0; i < first; ++i) out[i] = make();
  for (size_t done = first; done < out.size();) {
    const size_t count = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), count * sizeof(float));
    done += count;
  }
}

void FillNormal(std::span<float> out, float deviation, uint64_t seed) {
  RandomStream random(seed);
  float spare = 0;
  bool has_spare = false;
  FillRepeating(out, [&] {
    if (has_spare) {
      has_spare = false;
      return spare;
    }
    const float radius = deviation * std::sqrt(-2.0F * std::log(1.0F - random.Uniform()));
    const float angle = 2.0F * std::numbers::pi_v<float> * random.Uniform();
    spare = radius * std::sin(angle);
    has_spare = true;
    return radius * std::cos(angle);
  });
}

void FillUniform(std::span<float> out, float low, float high, uint64_t seed) {
  RandomStream random(seed);
  FillRepeating(out, [&] { return low + (high - low) * random.Uniform(); });
}

// The mapping of values to frequency ranks is not recorded; ranks are spread over the range.
void FillIndices(std::span<int64_t> out, const MemoryFill& fill, RandomStream& random) {
  const auto width = static_cast<uint64_t>(std::max<int64_t>(fill.high - fill.low, 1));
  if (fill.real <= 0 || width == 1) {
    for (int64_t& value : out) value = fill.low + static_cast<int64_t>(random.Below(width));
    return;
  }
  const ZipfRanks ranks(width, fill.real);
  uint64_t stride = width / 2 + random.Below(width / 2 + 1);
  while (std::gcd(stride, width) != 1) ++stride;
  for (int64_t& value : out) {
    const auto place =
        static_cast<uint64_t>(static_cast<unsigned __int128>(ranks.Next(random)) * stride % width);
    value = fill.low + static_cast<int64_t>(place);
  }
}

// With `low` 1 the last offset is the end.
void FillOffsets(std::span<int64_t> out, const MemoryFill& fill) {
  const auto count = static_cast<int64_t>(out.size());
  const int64_t parts = std::max<int64_t>(count - fill.low, 1);
  for (int64_t i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)] =
        static_cast<int64_t>(static_cast<__int128>(fill.high) * i / parts);
  }
}

// The first one is the longest; the others share the rest in descending order.
void FillLengths(std::span<int64_t> out, const MemoryFill& fill) {
  if (out.empty()) return;
  out[0] = std::min(fill.low, fill.high);
  const int64_t left = fill.high - out[0];
  const auto others = static_cast<int64_t>(out.size()) - 1;
  for (int64_t i = 1; i <= others; ++i) {
    const int64_t share = left / others + (i - 1 < left % others ? 1 : 0);
    out[static_cast<size_t>(i)] = std::min(share, out[0]);
  }
}

// Sets exactly `wanted` random elements to 1: each one with the remaining probability. The others
// become 0.
template <typename T>
void FillMask(std::span<T> out, int64_t wanted, uint64_t seed) {
  RandomStream random(seed);
  auto left =
      static_cast<uint64_t>(std::clamp<int64_t>(wanted, 0, static_cast<int64_t>(out.size())));
  for (size_t i = 0; i < out.size(); ++i) {
    const bool taken = random.Below(out.size() - i) < left;
    out[i] = taken ? T{1} : T{0};
    left -= taken ? 1 : 0;
  }
}

template <typename T>
void FillDistinct(std::span<T> out, const MemoryFill& fill) {
  const int64_t values = std::max<int64_t>(fill.high - fill.low, 1);
  const auto count = static_cast<__int128>(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<T>(fill.low + static_cast<int64_t>(i * static_cast<__int128>(values) /
                                                            std::max<__int128>(count, 1)));
  }
}

}  // namespace

void FillFloats(std::span<float> out, const MemoryFill& fill, uint64_t seed) {
  switch (fill.kind) {
    case MemoryFill::Kind::kMask: FillMask(out, fill.high, seed); return;
    case MemoryFill::Kind::kDistinct: FillDistinct(out, fill); return;
    case MemoryFill::Kind::kNormal: FillNormal(out, static_cast<float>(fill.real), seed); return;
    case MemoryFill::Kind::kUniform: FillUniform(out, 0.5F, 1.0F, seed); return;
    case MemoryFill::Kind::kConstant:
    case MemoryFill::Kind::kBytes:
    case MemoryFill::Kind::kIndex:
    case MemoryFill::Kind::kOffsets:
    case MemoryFill::Kind::kSteps:
    case MemoryFill::Kind::kLengths:
    case MemoryFill::Kind::kCoin: std::ranges::fill(out, 1.0F); return;
  }
}

void FillIntegers(std::span<int64_t> out, const MemoryFill& fill,
                  const std::vector<int64_t>* recorded, uint64_t seed) {
  using Fill = MemoryFill::Kind;
  if (fill.kind == Fill::kSteps) {
    MemoryFill offsets = fill;
    offsets.kind = Fill::kOffsets;
    FillIntegers(out, offsets, recorded, seed);
    for (size_t i = out.size(); i-- > 1;) out[i] -= out[i - 1];
    return;
  }
  if (recorded != nullptr && recorded->size() == out.size()) {
    std::ranges::copy(*recorded, out.begin());
    return;
  }
  RandomStream random(seed);
  switch (fill.kind) {
    case Fill::kIndex: FillIndices(out, fill, random); return;
    case Fill::kOffsets: FillOffsets(out, fill); return;
    case Fill::kLengths: FillLengths(out, fill); return;
    case Fill::kMask: FillMask(out, fill.high, seed); return;
    case Fill::kDistinct: FillDistinct(out, fill); return;
    case Fill::kConstant:
    case Fill::kNormal:
    case Fill::kUniform:
    case Fill::kBytes:
    case Fill::kSteps:
    case Fill::kCoin: std::ranges::fill(out, fill.low); return;
  }
}

void FillBytes(std::span<uint8_t> out, uint64_t seed) {
  RandomStream random(seed);
  for (uint8_t& value : out) value = static_cast<uint8_t>(random.Next() & 0x7F);
}

void FillBools(std::span<uint8_t> out, const MemoryFill& fill, uint64_t seed) {
  if (fill.kind == MemoryFill::Kind::kMask) {
    FillMask(out, fill.high, seed);
    return;
  }
  RandomStream random(seed);
  for (uint8_t& value : out) value = static_cast<uint8_t>(random.Next() & 1);
}

}  // namespace etude
