#include "src/suite/data/idx.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"

namespace etude::suite {
namespace {

constexpr uint8_t kUnsignedBytes = 8;
constexpr int64_t kLargestArray = int64_t{1} << 32;  // bytes

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

Result<IdxArray> ReadIdx(const std::string& path, const RunContext& context) {
  std::error_code error;
  const bool packed =
      !std::filesystem::exists(path, error) && std::filesystem::exists(path + ".gz", error);
  const std::string file = packed ? path + ".gz" : path;
  ETUDE_RETURN_IF_ERROR(CheckRegular(file));
  ETUDE_ASSIGN_OR_RETURN(const std::string all,
                         ReadWholeFile(file, context.limits, kLargestArray, ""));

  const size_t dimensions = all.size() < 4 ? 0 : static_cast<uint8_t>(all[3]);
  if (all.size() < 4 || all[0] != 0 || all[1] != 0 ||
      static_cast<uint8_t>(all[2]) != kUnsignedBytes || dimensions == 0 ||
      all.size() < 4 + 4 * dimensions) {
    return BadInput(file + ": found no idx file of bytes, expected MNIST's format");
  }
  IdxArray array;
  int64_t elements = 1;
  for (size_t dimension = 0; dimension < dimensions; ++dimension) {
    const int64_t size = BigEndian(std::string_view(all).substr(4 + 4 * dimension));
    array.sizes.push_back(size);
    elements =
        size > kLargestArray / std::max<int64_t>(elements, 1) ? kLargestArray : elements * size;
  }
  array.bytes = all.substr(4 + 4 * dimensions);
  if (std::ssize(array.bytes) != elements) {
    return BadInput(fmt::format("{}: found {} bytes of elements, expected {}", file,
                                array.bytes.size(), elements));
  }
  return array;
}

}  // namespace etude::suite
