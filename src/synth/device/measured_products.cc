#include "src/synth/device/measured_products.h"

#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/quantity.h"
#include "src/synth/device/float_type.h"

namespace etude {
namespace {

constexpr std::string_view kProductHeading = "count,rows,inner,columns,type,time";
constexpr size_t kProductColumns = 6;

std::string_view WithoutSpaces(std::string_view text) {
  return Trimmed(text, [](char c) { return c == ' ' || c == '\r'; });
}

std::vector<std::string_view> ProductFields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = line.find(',');
    fields.push_back(WithoutSpaces(line.substr(0, end)));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return fields;
}

}  // namespace

Result<MeasuredProducts> MeasuredProducts::Parse(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  MeasuredProducts products;
  size_t number = 0;
  bool headed = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = WithoutSpaces(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const auto wrong = [&](std::string_view what) {
      return BadInput(fmt::format("{}:{}: {}", path, number, what));
    };
    if (line.empty() || line.starts_with('#')) continue;
    if (!headed) {
      if (line != kProductHeading) {
        return wrong(fmt::format("found '{}', expected the heading '{}'", line, kProductHeading));
      }
      headed = true;
      continue;
    }
    const std::vector<std::string_view> fields = ProductFields(line);
    if (fields.size() != kProductColumns) {
      return wrong(fmt::format("found {} values, expected {}", fields.size(), kProductColumns));
    }
    std::array<int64_t, 4> sizes;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto size = ParseWhole(fields[i]);
      if (!size || *size < 1) {
        return wrong(fmt::format("found '{}', expected a whole number from 1", fields[i]));
      }
      sizes[i] = *size;
    }
    const std::optional<DType> type = FloatType(fields[4]);
    if (!type) {
      return wrong(fmt::format("found '{}', expected {}", fields[4], FloatTypeNames()));
    }
    const auto time = ParseTime(fields[5]);
    if (!time) return wrong(fmt::format("found '{}', expected a time, such as 120us", fields[5]));
    if (time->count == 0) {
      return wrong(fmt::format("found '{}', expected a time of one nanosecond or more", fields[5]));
    }
    const ProductShape shape{sizes[0], sizes[1], sizes[2], sizes[3]};
    if (!products.times_.emplace(std::pair(shape, *type), *time).second) {
      return wrong("found a second time of this product, expected one time per product");
    }
  }
  if (!headed) {
    return BadInput(fmt::format("{}: found an empty file, expected a table with the heading '{}'",
                                path, kProductHeading));
  }
  return products;
}

std::string MeasuredProducts::ToCsv() const {
  std::string text = std::string(kProductHeading) + "\n";
  for (const auto& [product, time] : times_) {
    const auto& [shape, type] = product;
    text += fmt::format("{},{},{},{},{},{}ns\n", shape.count, shape.rows, shape.inner,
                        shape.columns, Name(type), time.count);
  }
  return text;
}

std::optional<Nanos> MeasuredProducts::Find(const ProductShape& shape, DType type) const {
  const auto found = times_.find({shape, type});
  return found == times_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace etude
