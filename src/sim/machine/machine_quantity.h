#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

// Numbers of machine files, with or without units.
namespace etude {

// A number, or a text with a unit.
struct Quantity {
  const char* expected;
  std::optional<double> (*of_text)(std::string_view text);
};

inline std::optional<double> NumberIn(std::string_view text, std::string_view& unit) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc()) return std::nullopt;
  unit = text.substr(static_cast<size_t>(end.ptr - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return value;
}
template <size_t N>
std::optional<double> InUnits(std::string_view text,
                              const std::pair<std::string_view, double> (&units)[N]) {
  std::string_view unit;
  const auto value = NumberIn(text, unit);
  if (!value) return std::nullopt;
  if (unit.empty()) return value;
  for (const auto& [name, factor] : units) {
    if (name == unit) return *value * factor;
  }
  return std::nullopt;
}

inline constexpr double kBytesPerGib = 1073741824.0;

inline constexpr Quantity kNumber{"a number", [](std::string_view text) {
                                    std::string_view unit;
                                    const auto value = NumberIn(text, unit);
                                    return unit.empty() ? value : std::nullopt;
                                  }};
inline constexpr Quantity kNanos{
    "nanoseconds, or a time such as 25us", [](std::string_view text) {
      static constexpr std::pair<std::string_view, double> kUnits[] = {
          {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
      return InUnits(text, kUnits);
    }};
// In network files a number without a unit is in GiB/s.
inline constexpr Quantity kNetworkRate{
    "GiB/s, or a rate such as 200Gbps, 50GB/s or 50GiB/s", [](std::string_view text) {
      static constexpr std::pair<std::string_view, double> kUnits[] = {
          {"GiB/s", 1},
          {"MiB/s", 1.0 / 1024},
          {"TiB/s", 1024},
          {"GB/s", 1e9 / kBytesPerGib},
          {"MB/s", 1e6 / kBytesPerGib},
          {"TB/s", 1e12 / kBytesPerGib},
          {"Gbps", 1.25e8 / kBytesPerGib},
          {"Tbps", 1.25e11 / kBytesPerGib},
          {"Mbps", 1.25e5 / kBytesPerGib},
          {"KiB/s", 1.0 / 1048576},
          {"KB/s", 1e3 / kBytesPerGib},
          {"B/s", 1 / kBytesPerGib},
          {"Kbps", 125 / kBytesPerGib}};
      return InUnits(text, kUnits);
    }};
// More makes times that are no longer numbers.
inline constexpr double kMostNetworkRate = 1e15;  // GiB/s
// Returns what is expected instead of a wrong rate, before its unit.
inline const char* NetworkRateRange(std::optional<double> rate) {
  return rate && *rate > kMostNetworkRate ? "at most 1e15" : "more than 0";
}

inline constexpr Quantity kMemoryRate{
    "GB/s, or a rate such as 3.35TB/s or 900GiB/s", [](std::string_view text) {
      static constexpr std::pair<std::string_view, double> kUnits[] = {
          {"GB/s", 1},
          {"MB/s", 1e-3},
          {"TB/s", 1e3},
          {"KB/s", 1e-6},
          {"B/s", 1e-9},
          {"KiB/s", 1024 / 1e9},
          {"MiB/s", 1048576 / 1e9},
          {"GiB/s", kBytesPerGib / 1e9},
          {"TiB/s", 1024 * kBytesPerGib / 1e9}};
      return InUnits(text, kUnits);
    }};
inline constexpr Quantity kPeak{"TFLOPS, or a rate such as 989TFLOPS", [](std::string_view text) {
                                  static constexpr std::pair<std::string_view, double> kUnits[] = {
                                      {"GFLOPS", 1e-3}, {"TFLOPS", 1}, {"PFLOPS", 1e3}};
                                  return InUnits(text, kUnits);
                                }};

}  // namespace etude
