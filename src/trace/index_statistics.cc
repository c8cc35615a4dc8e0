#include "src/trace/index_statistics.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr double kLeastEqualPairs = 16;
constexpr double kGreatestSkew = 16;

// Returns the sum of r^-s for r from 1 to `span`: the first terms one by one, the rest by the
// Euler-Maclaurin formula, with a relative error below 1e-6.
double Harmonic(double span, double s) {
  constexpr double kTerms = 64;
  double sum = 0;
  const double first = std::min(span, kTerms);
  for (double r = 1; r < first; ++r) sum += std::pow(r, -s);
  const double low = std::pow(first, -s);
  if (span <= kTerms) return sum + low;
  const double high = std::pow(span, -s);
  const double integral =
      std::abs(s - 1) < 1e-9 ? std::log(span / first) : (span * high - first * low) / (1 - s);
  return sum + integral + (low + high) / 2 + s * (low / first - high / span) / 12;
}

// Returns the probability that two draws of Zipf's law are equal.
double EqualProbability(double span, double s) {
  const double sum = Harmonic(span, s);
  return Harmonic(span, 2 * s) / (sum * sum);
}

}  // namespace

std::optional<double> FitZipf(uint64_t elements, uint64_t equal_pairs, uint64_t span) {
  if (elements < 2 || span < 2) return std::nullopt;
  const double values = static_cast<double>(span);
  const double pairs = static_cast<double>(elements) * static_cast<double>(elements - 1) / 2;
  const double equal = static_cast<double>(equal_pairs);
  if (std::max(equal, pairs / values) < kLeastEqualPairs) return std::nullopt;
  const double probability = equal / pairs;
  if (probability <= EqualProbability(values, 0)) return 0;
  double low = 0;
  double high = kGreatestSkew;
  if (probability >= EqualProbability(values, high)) return high;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (EqualProbability(values, middle) < probability ? low : high) = middle;
  }
  return low;
}

std::string ToText(const std::vector<IndexStatistics>& statistics) {
  std::string text;
  for (const IndexStatistics& one : statistics) {
    text +=
        fmt::format("{}\"{}\":{{\"elements\":{},\"distinct\":{},\"equal_pairs\":{},\"ascends\":{}",
                    text.empty() ? "{" : ",", one.tensor, one.elements, one.distinct,
                    one.equal_pairs, one.ascends);
    if (one.skew) text += fmt::format(",\"skew\":{:.3f}", *one.skew);
    text += '}';
  }
  return text.empty() ? text : text + "}";
}

std::optional<std::vector<IndexStatistics>> ParseIndexStatistics(std::string_view text) {
  const auto json = ParseBounded<nlohmann::ordered_json>(text);
  if (!json.is_object()) return std::nullopt;
  std::vector<IndexStatistics> all;
  for (const auto& [key, value] : json.items()) {
    const std::optional<int64_t> tensor = ParseWhole(key);
    if (!tensor || *tensor < 0 || !value.is_object()) return std::nullopt;
    IndexStatistics& one = all.emplace_back();
    one.tensor = static_cast<uint64_t>(*tensor);
    const auto count = [&](const char* name, uint64_t& place) {
      const auto found = value.find(name);
      if (found == value.end() || !found->is_number_unsigned()) return false;
      place = found->template get<uint64_t>();
      return true;
    };
    const auto ascends = value.find("ascends");
    if (!count("elements", one.elements) || !count("distinct", one.distinct) ||
        !count("equal_pairs", one.equal_pairs) || ascends == value.end() ||
        !ascends->is_boolean()) {
      return std::nullopt;
    }
    one.ascends = ascends->template get<bool>();
    if (const auto skew = value.find("skew"); skew != value.end()) {
      if (!skew->is_number() || !(skew->template get<double>() >= 0)) return std::nullopt;
      one.skew = skew->template get<double>();
    }
  }
  return all;
}

std::optional<std::vector<IndexValues>> ParseIndexValues(std::string_view text) {
  const auto json = ParseBounded<nlohmann::ordered_json>(text);
  if (!json.is_object()) return std::nullopt;
  std::vector<IndexValues> all;
  for (const auto& [key, list] : json.items()) {
    const std::optional<int64_t> tensor = ParseWhole(key);
    if (!tensor || *tensor < 0 || !list.is_array()) return std::nullopt;
    IndexValues& one = all.emplace_back();
    one.tensor = static_cast<uint64_t>(*tensor);
    one.values.reserve(list.size());
    for (const auto& value : list) {
      if (!value.is_number_integer()) return std::nullopt;
      one.values.push_back(value.template get<int64_t>());
    }
  }
  return all;
}

}  // namespace etude
