#include "src/suite/data/photographs/photographs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/folder_names.h"
#include "src/suite/data/idx.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kColours = 3;

Result<at::Tensor> ReadPhotograph(const std::string& path, int64_t least_side,
                                  const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const IdxArray array, ReadIdx(path, context));
  const std::vector<int64_t>& sizes = array.sizes;
  if (sizes.size() != 3 || sizes[2] != kColours) {
    return BadInput(fmt::format("{}: found an array of {}, expected rows × columns × {} colours",
                                path, fmt::join(sizes, " × "), kColours));
  }
  if (std::min(sizes[0], sizes[1]) < least_side) {
    return BadInput(fmt::format("{}: found {} × {} pixels, expected {} × {} or more", path,
                                sizes[0], sizes[1], least_side, least_side));
  }
  std::vector<float> values(array.bytes.size());
  std::ranges::transform(array.bytes, values.begin(), [](char byte) {
    return static_cast<float>(static_cast<uint8_t>(byte)) / 255.0F;
  });
  return FromValues(values, sizes).permute({2, 0, 1}).contiguous();
}

Result<std::vector<at::Tensor>> ReadFolder(const std::string& folder, int64_t least_side,
                                           const RunContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder + ": missing; `etude suite setup` makes it");
  }
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<at::Tensor> photographs;
  for (const std::string& name : names) {
    ETUDE_ASSIGN_OR_RETURN(at::Tensor photograph,
                           ReadPhotograph(folder + "/" + name, least_side, context));
    photographs.push_back(std::move(photograph));
  }
  if (photographs.empty()) return BadInput(folder + ": found no files, expected photographs");
  return photographs;
}

}  // namespace

Result<Photographs> ReadPhotographs(const std::string& folder, int64_t least_train,
                                    int64_t least_test, const RunContext& context) {
  const std::string base = folder + "/photographs";
  Photographs all;
  ETUDE_ASSIGN_OR_RETURN(all.train, ReadFolder(base + "/train", least_train, context));
  ETUDE_ASSIGN_OR_RETURN(all.test, ReadFolder(base + "/test", least_test, context));
  return all;
}

}  // namespace etude::suite
