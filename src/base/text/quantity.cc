#include "src/base/text/quantity.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <system_error>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

struct UnitRow {
  std::string_view name;
  int64_t factor;
};

constexpr UnitRow kTimeUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"µs", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"min", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
};

constexpr UnitRow kByteUnits[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1'000},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
};

constexpr UnitRow kOperationUnits[] = {
    {"FLOPS", 1},
    {"GFLOPS", 1'000'000'000},
    {"TFLOPS", 1'000'000'000'000},
    {"PFLOPS", 1'000'000'000'000'000},
};

// Returns the number times the factor of its unit, if the product is a whole number that fits, or
// is rounded down to one.
std::optional<int64_t> Parse(std::string_view text, std::span<const UnitRow> units,
                             bool rounds_down = false) {
  size_t end = 0;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
  const std::string_view number = text.substr(0, end);
  std::string_view name = text.substr(end);
  while (name.starts_with(' ')) name.remove_prefix(1);
  const UnitRow* unit = nullptr;
  for (const UnitRow& row : units) {
    if (row.name == name) unit = &row;
  }
  const bool is_zero = number == "0" && name.empty();
  if (is_zero) return 0;
  if (unit == nullptr || number.empty() || number.starts_with('.') || number.ends_with('.')) {
    return std::nullopt;
  }
  uint64_t whole = 0;  // digits so far, without the point
  uint64_t scale = 1;  // 10 to the number of digits after the point
  bool behind_point = false;
  for (const char c : number) {
    if (c == '.') {
      if (behind_point) return std::nullopt;
      behind_point = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(c - '0');
    if (__builtin_mul_overflow(whole, uint64_t{10}, &whole)) return std::nullopt;
    if (__builtin_add_overflow(whole, digit, &whole)) return std::nullopt;
    if (behind_point && __builtin_mul_overflow(scale, uint64_t{10}, &scale)) return std::nullopt;
  }
  uint64_t product = 0;
  if (__builtin_mul_overflow(whole, static_cast<uint64_t>(unit->factor), &product)) {
    return std::nullopt;
  }
  if (product % scale != 0 && !rounds_down) return std::nullopt;
  if (product / scale > uint64_t{INT64_MAX}) return std::nullopt;
  return static_cast<int64_t>(product / scale);
}

template <typename Number>
std::optional<Number> ParseAll(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> ParseWhole(std::string_view text) { return ParseAll<int64_t>(text); }

std::optional<std::vector<int64_t>> ParseRanges(std::string_view text, int64_t most) {
  std::vector<int64_t> numbers;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t dash = item.find('-');
    const auto first = ParseWhole(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseWhole(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > most) return std::nullopt;
    if (std::ssize(numbers) + *last - *first > most) return std::nullopt;
    for (int64_t number = *first; number <= *last; ++number) numbers.push_back(number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseDecimal(std::string_view text) {
  const auto value = ParseAll<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Nanos> ParseTime(std::string_view text) {
  const auto count = Parse(text, kTimeUnits);
  if (!count) return std::nullopt;
  return Nanos{*count};
}

std::optional<Bytes> ParseBytes(std::string_view text) {
  const auto count = Parse(text, kByteUnits);
  if (!count) return std::nullopt;
  return Bytes{*count};
}

std::optional<Bytes> ParseBytesWithUnit(std::string_view text) {
  if (text.empty() || IsDigit(text.back())) return std::nullopt;
  const auto count = Parse(text, kByteUnits, /*rounds_down=*/true);
  if (!count) return std::nullopt;
  return Bytes{*count};
}

std::optional<int64_t> ParseOperationsPerSecond(std::string_view text) {
  return Parse(text, kOperationUnits);
}

}  // namespace etude
