#include "src/synth/device/float_type.h"

#include <algorithm>
#include <array>

namespace etude {
namespace {

constexpr auto kFloatTypes = std::to_array<DType>(
    {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3Fn, DType::kFloat8E5M2});

}  // namespace

std::optional<DType> FloatType(std::string_view name) {
  const auto found =
      std::ranges::find_if(kFloatTypes, [&](DType type) { return Name(type) == name; });
  return found == kFloatTypes.end() ? std::nullopt : std::optional(*found);
}

std::string FloatTypeNames() {
  std::string names;
  for (const DType& type : kFloatTypes) {
    if (!names.empty()) names += &type == &kFloatTypes.back() ? " or " : ", ";
    names += Name(type);
  }
  return names;
}

}  // namespace etude
