#include "src/base/text/bounded_number.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

std::string ExpectedText(Bounds bounds) {
  constexpr Bounds kAny;
  if (bounds.least == kAny.least && bounds.most == kAny.most) return "a whole number";
  if (bounds.most == kAny.most) return fmt::format("{} or more", bounds.least);
  return fmt::format("{} to {}", bounds.least, bounds.most);
}

}  // namespace

Result<int64_t> ParseWithin(const std::string& text, Bounds bounds) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= bounds.least && value <= bounds.most) return value;
  // The maximum is mentioned only for numbers that are too large.
  const bool large = error == std::errc::result_out_of_range && !text.starts_with('-');
  const std::string expected =
      large ? fmt::format("at most {}", bounds.most) : ExpectedText(bounds);
  return MakeError(ErrorCode::kUsage, fmt::format("found '{}', expected {}", text, expected));
}

Result<double> ParseAbove(const std::string& text, double above) {
  if (const auto value = ParseDecimal(text); value && *value > above) return *value;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("found '{}', expected a number{}", text,
                               std::isfinite(above) ? fmt::format(" above {}", above) : ""));
}

}  // namespace etude
