#include "src/suite/results/hyperparameters.h"

#include <array>
#include <span>

namespace etude::suite {
namespace {

constexpr std::array<std::string_view, 2> kScales = {"smoke", "paper"};
constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "bf16", "fp16"};
constexpr std::array<std::string_view, 4> kOptimizers = {"sgd", "adam", "adamw", "rmsprop"};

template <typename Kind>
std::optional<Kind> Find(std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(Scale scale) { return kScales[static_cast<size_t>(scale)]; }

std::string_view Name(Precision precision) { return kPrecisions[static_cast<size_t>(precision)]; }
std::optional<Precision> PrecisionFromName(std::string_view name) {
  return Find<Precision>(kPrecisions, name);
}

std::string_view Name(OptimizerOptions::Kind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}
std::optional<OptimizerOptions::Kind> OptimizerKindFromName(std::string_view name) {
  return Find<OptimizerOptions::Kind>(kOptimizers, name);
}

}  // namespace etude::suite
