#include "src/replay/values/fill_rule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace etude {
namespace {

// Returns the standard deviation of random weights that keeps sums over rows near one, in both
// directions (Glorot & Bengio, 2010).
float WeightDeviation(std::span<const int64_t> sizes) {
  if (sizes.size() < 2) return 0.02F;
  double field = 1;
  for (size_t i = 2; i < sizes.size(); ++i) field *= static_cast<double>(sizes[i]);
  const double fans = field * static_cast<double>(sizes[0] + sizes[1]);
  return static_cast<float>(std::sqrt(2.0 / std::max(fans, 1.0)));
}

MemoryFill IntegersBy(const FillRule& rule, bool is_byte) {
  using Fill = MemoryFill::Kind;
  MemoryFill fill{.low = rule.low, .high = rule.high};
  switch (rule.kind) {
    case FillRule::Kind::kIndex:
      fill.kind = Fill::kIndex;
      fill.real = rule.skew;
      return fill;
    case FillRule::Kind::kOffsets: fill.kind = Fill::kOffsets; return fill;
    case FillRule::Kind::kSteps: fill.kind = Fill::kSteps; return fill;
    case FillRule::Kind::kLengths: fill.kind = Fill::kLengths; return fill;
    case FillRule::Kind::kConstant: fill.kind = Fill::kConstant; return fill;
    case FillRule::Kind::kMask: fill.kind = Fill::kMask; return fill;
    case FillRule::Kind::kDistinct: fill.kind = Fill::kDistinct; return fill;
    case FillRule::Kind::kDefault:
    case FillRule::Kind::kWeight:
    case FillRule::Kind::kPositive: break;
  }
  fill.kind = is_byte && rule.kind == FillRule::Kind::kDefault ? Fill::kBytes : Fill::kConstant;
  fill.low = 1;
  return fill;
}

MemoryFill FloatsBy(FillRule::Kind kind, int64_t elements, std::span<const int64_t> sizes) {
  if (kind == FillRule::Kind::kMask) return {.kind = MemoryFill::Kind::kMask};
  if (kind == FillRule::Kind::kDistinct) return {.kind = MemoryFill::Kind::kDistinct};
  if (elements == 1) return {.kind = MemoryFill::Kind::kConstant};
  if (kind == FillRule::Kind::kPositive) return {.kind = MemoryFill::Kind::kUniform};
  return {.kind = MemoryFill::Kind::kNormal,
          .real = kind == FillRule::Kind::kWeight ? WeightDeviation(sizes) : 1.0};
}

}  // namespace

MemoryFill FillBy(const FillRule& rule, FilledElement element, int64_t elements,
                  std::span<const int64_t> sizes) {
  switch (element) {
    case FilledElement::kBool:
      return {.kind = rule.kind == FillRule::Kind::kMask ? MemoryFill::Kind::kMask
                                                         : MemoryFill::Kind::kCoin,
              .low = rule.low,
              .high = rule.high};
    case FilledElement::kByte: return IntegersBy(rule, true);
    case FilledElement::kInteger: return IntegersBy(rule, false);
    case FilledElement::kFloat: break;
  }
  MemoryFill fill = FloatsBy(rule.kind, elements, sizes);
  fill.low = rule.low;
  fill.high = rule.high;
  return fill;
}

}  // namespace etude
