#include "src/base/text/format_count.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace etude {

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string FormatCount(uint64_t count, std::string_view one, std::string_view many) {
  const std::string_view plural_end = many.empty() ? "s" : "";
  if (count == 1) return fmt::format("1 {}", one);
  return fmt::format("{} {}{}", FormatCount(count), many.empty() ? one : many, plural_end);
}

std::string FormatShare(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string FormatTime(Nanos time) {
  constexpr double kHour = 3600e9;
  constexpr double kDay = 24 * kHour;
  constexpr double kYear = 365.25 * kDay;
  const double ns = static_cast<double>(time.count);
  const double size = std::abs(ns);
  if (size < 1e3) return fmt::format("{} ns", time.count);
  if (size < 1e6) return fmt::format("{:.1f} µs", ns / 1e3);
  if (size < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  if (size < 1e13) return fmt::format("{:.3f} s", ns / 1e9);
  if (size < 3 * kDay) return fmt::format("{:.1f} h", ns / kHour);
  if (size < 2 * kYear) return fmt::format("{:.1f} days", ns / kDay);
  return fmt::format("{:.1f} years", ns / kYear);
}

}  // namespace etude
