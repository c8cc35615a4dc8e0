#include "src/suite/data/faces/pgm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kMostGreyPixels = int64_t{1} << 28;
constexpr int64_t kLargestGrey = 65535;

// Removes the next word of a header from `rest`. Returns "" at its end.
std::string_view TakeWord(std::string_view& rest) {
  while (!rest.empty() && (IsBlank(rest.front()) || rest.front() == '#')) {
    const bool is_comment = rest.front() == '#';
    rest.remove_prefix(is_comment ? std::min(rest.find('\n'), rest.size()) : 1);
  }
  const auto end = std::ranges::find_if(rest, IsBlank);
  const std::string_view word = rest.substr(0, static_cast<size_t>(end - rest.begin()));
  rest.remove_prefix(word.size());
  return word;
}

}  // namespace

Result<at::Tensor> ReadPgm(const std::string& path, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, context.limits));
  std::string_view rest = bytes;
  const bool is_pgm = TakeWord(rest) == "P5";
  std::array<int64_t, 3> header{};  // width, height, largest value
  for (int64_t& value : header) value = ParseWhole(TakeWord(rest)).value_or(0);
  const auto [width, height, largest] = header;
  if (!is_pgm || width < 1 || height < 1 || largest < 1 || largest > kLargestGrey ||
      width > kMostGreyPixels / height) {
    return BadInput(path + ": no binary PGM picture, expected 'P5', width, height and 1 to 65535");
  }
  if (!rest.empty()) rest.remove_prefix(1);  // one blank precedes the pixels
  const size_t size = largest > 255 ? 2 : 1;
  const auto pixels = static_cast<size_t>(width * height);
  if (rest.size() < pixels * size) {
    return BadInput(
        fmt::format("{}: {} bytes of pixels, expected {}", path, rest.size(), pixels * size));
  }
  std::vector<float> values(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    int64_t value = 0;
    for (size_t byte = 0; byte < size; ++byte) {
      value = value * 256 + static_cast<uint8_t>(rest[i * size + byte]);
    }
    values[i] = static_cast<float>(std::min(value, largest)) / static_cast<float>(largest);
  }
  return FromValues(values, {1, height, width});
}

}  // namespace etude::suite
