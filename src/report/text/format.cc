#include "src/report/text/format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "src/base/text/function_name.h"
#include "src/base/text/printable.h"

namespace etude {
namespace {

// Returns the number of code points of UTF-8 text. Etude's tables contain no wide or combining
// characters.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Returns the begin of code point `index`, or the end of the text.
size_t PointAt(std::string_view text, size_t index) {
  size_t points = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && points++ == index) return i;
  }
  return text.size();
}

// Returns whether a name is a path, as of modules and scopes, rather than a kernel with template
// parameters.
bool IsPath(std::string_view name) {
  return name.find('<') == std::string_view::npos &&
         (name.find_first_of("./") != std::string_view::npos ||
          name.find("::") != std::string_view::npos);
}

// Returns `value` in the largest of `units` in which it is at least 1; each unit is `step` times
// the previous one.
std::string Scaled(double value, double step, std::span<const std::string_view> units) {
  size_t unit = 0;
  while (std::abs(value) >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, units[unit]);
}

}  // namespace

std::string FormatBytes(Bytes bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return Scaled(static_cast<double>(bytes.count), 1024, kUnits);
}

std::string FormatRate(double bytes_per_second) {
  static constexpr std::string_view kUnits[] = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  return Scaled(bytes_per_second, 1000, kUnits);
}

std::string FormatNumber(double number) {
  constexpr double kFiveDigits = 9999.5;
  constexpr double kMost = 1e15;
  const double size = std::abs(number);
  if (!(size >= kFiveDigits && size < kMost)) return fmt::format("{:.4g}", number);
  return (number < 0 ? "-" : "") + FormatCount(static_cast<uint64_t>(std::llround(size)));
}

double WithoutNoise(double number) {
  constexpr double kNoise = 4 * std::numeric_limits<double>::epsilon();
  const double whole = std::nearbyint(number);
  const bool is_whole = std::abs(number - whole) <= kNoise * std::abs(number);
  return std::abs(number) >= 1 && is_whole ? whole : number;
}

std::string FormatError(double error) { return fmt::format("{:+.1f} %", error * 100); }

std::string ShortText(std::string_view text, size_t most) {
  const size_t end = PointAt(text, most);
  return end == text.size() ? std::string(text) : std::string(text.substr(0, end)) + "…";
}

std::string ShortName(std::string_view name, size_t most) {
  constexpr std::string_view kMangled = "_Z";
  const std::string written = name.starts_with(kMangled) ? DemangledName(name) : std::string(name);
  name = written;
  if (Width(name) <= most) return std::string(name);
  const std::string bare(BareFunctionName(name));
  const size_t points = Width(bare);
  if (points <= most) return bare;
  if (!IsPath(bare)) return ShortText(bare, most);
  const size_t tail = most / 2;
  return ShortText(bare, most - tail) + bare.substr(PointAt(bare, points - tail));
}

void TextTable::Row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::Text(std::string_view indent) const {
  std::vector<size_t> widths(aligns_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - Width(row[i]), ' ');
      if (i != 0) line += "  ";
      line += aligns_[i] == Align::kLeft ? row[i] + pad : pad + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace etude
