#include "src/base/format_count.h"

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

}  // namespace etude
