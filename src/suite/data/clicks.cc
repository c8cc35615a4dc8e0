#include "src/suite/data/clicks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/base/zipf_ranks.h"
#include "src/formats/io/file_text.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr auto kGeneratedRows = std::to_array<int64_t>({10, 15, 20, 30, 50, 80, 150, 300});
constexpr int64_t kGeneratedNumbers = 4;
constexpr int64_t kGeneratedLearned = 100'000;
constexpr int64_t kGeneratedHeldOut = 10'000;
constexpr uint64_t kGeneratedSeed = 18;
constexpr size_t kFactors = 2;  // factors per category, whose products count

constexpr size_t kCriteoNumbers = 13;
constexpr size_t kCriteoTables = 26;

constexpr size_t kCaravanFields = 86;  // with the label, the last
// Categories and the largest value of each.
constexpr auto kCaravanTables = std::to_array<std::pair<size_t, int64_t>>({{0, 41}, {4, 10}});
constexpr std::string_view kCaravanLine = "86 whole numbers between tabs, the last of them 0 or 1";
constexpr size_t kHeldOutOfCaravan = 5;  // one of as many lines

float NormalFrom(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(random.Uniform())));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.Uniform()));
}

std::vector<float> NormalsFrom(RandomStream& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = NormalFrom(random);
  return values;
}

// Moves and scales to mean 0 and variance 1.
void Normalise(std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const double mean = sum / static_cast<double>(values.size());
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()) - mean * mean);
  for (double& value : values) value = (value - mean) / deviation;
}

// The contribution of one table to a logit.
struct Effects {
  std::vector<float> terms;    // by category
  std::vector<float> factors;  // [categories, kFactors]
};

Impressions Rows(std::span<const float> numbers, std::span<const int64_t> categories,
                 std::span<const float> labels) {
  const auto count = static_cast<int64_t>(labels.size());
  return {.numbers = FromValues(numbers, {count, std::ssize(numbers) / count}),
          .categories = FromValues(categories, {count, std::ssize(categories) / count}),
          .labels = FromValues(labels, {count})};
}

// Removes the first line from `rest`, and returns it without its end.
std::string_view TakeLine(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Removes the first field from a line with tabs, and returns it.
std::string_view TakeField(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find('\t'));
  line.remove_prefix(std::min(line.size(), field.size() + 1));
  return field;
}

// Scales each column of both parts to mean 0 and variance 1 of the learned rows.
void Standardise(at::Tensor& learned, at::Tensor& held_out) {
  const at::Tensor mean = learned.mean(0);
  const at::Tensor centred = learned - mean;
  const at::Tensor deviation = centred.square().mean(0).sqrt();
  const at::Tensor factor = at::where(deviation > 0, 1 / deviation, 0);
  learned = centred * factor;
  held_out = (held_out - mean) * factor;
}

}  // namespace

Clicks GenerateClicks() {
  constexpr auto kTables = kGeneratedRows.size();
  constexpr auto kCount = static_cast<size_t>(kGeneratedLearned + kGeneratedHeldOut);
  RandomStream random(kGeneratedSeed);
  std::vector<Effects> effects;
  std::vector<ZipfRanks> ranks;
  for (const int64_t rows : kGeneratedRows) {
    const auto count = static_cast<size_t>(rows);
    std::vector<float> terms = NormalsFrom(random, count);
    effects.push_back({std::move(terms), NormalsFrom(random, count * kFactors)});
    ranks.emplace_back(static_cast<uint64_t>(rows), 1.05);
  }
  const std::vector<float> slopes = NormalsFrom(random, kGeneratedNumbers);
  std::vector<float> numbers;
  std::vector<int64_t> categories;
  std::vector<double> terms(kCount);
  std::vector<double> products(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    std::array<float, kFactors> sums{};
    for (size_t table = 0; table < kTables; ++table) {
      const uint64_t category = ranks[table].Next(random) - 1;
      categories.push_back(static_cast<int64_t>(category));
      terms[i] += effects[table].terms[category];
      for (size_t factor = 0; factor < kFactors; ++factor) {
        const float value = effects[table].factors[category * kFactors + factor];
        sums[factor] += value;
        products[i] -= value * value / 2;
      }
    }
    for (const float sum : sums) products[i] += sum * sum / 2;
    for (const float slope : slopes) {
      numbers.push_back(NormalFrom(random));
      terms[i] += numbers.back() * slope;
    }
  }
  Normalise(terms);
  Normalise(products);
  std::vector<float> labels;
  std::vector<float> probabilities;
  for (size_t i = 0; i < kCount; ++i) {
    const double logit = -1.1 + 1.2 * (0.7 * terms[i] + products[i]);
    probabilities.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
    labels.push_back(random.Uniform() < probabilities.back() ? 1 : 0);
  }
  const Impressions all = Rows(numbers, categories, labels);
  const auto part = [&](int64_t begin, int64_t end) {
    return Impressions{.numbers = all.numbers.slice(0, begin, end),
                       .categories = all.categories.slice(0, begin, end),
                       .labels = all.labels.slice(0, begin, end)};
  };
  constexpr auto kAll = static_cast<int64_t>(kCount);
  return {.learned = part(0, kGeneratedLearned),
          .held_out = part(kGeneratedLearned, kAll),
          .rows = {kGeneratedRows.begin(), kGeneratedRows.end()},
          .probabilities = FromValues(probabilities, {kAll}).slice(0, kGeneratedLearned, kAll)};
}

Result<Clicks> ReadCriteo(const std::string& path, int64_t most_rows, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, context.limits));
  const auto lines = std::ranges::count(file.text(), '\n') + (file.text().ends_with('\n') ? 0 : 1);
  const int64_t learned = lines - lines / 7;
  std::vector<float> numbers;
  std::vector<int64_t> categories;
  std::vector<float> labels;
  std::array<std::unordered_map<std::string_view, int64_t>, kCriteoTables> known;
  std::string_view rest = file.text();
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakeLine(rest);
    const auto refuse = [&] {
      return BadInput(
          fmt::format("{}:{}: found '{}', expected a label (0 or 1), {} numbers and {} "
                      "categories between tabs",
                      path, number, Printable(line.substr(0, 60)), kCriteoNumbers, kCriteoTables));
    };
    if (static_cast<size_t>(std::ranges::count(line, '\t')) != kCriteoNumbers + kCriteoTables) {
      return refuse();
    }
    std::string_view fields = line;
    const std::string_view label = TakeField(fields);
    if (label != "0" && label != "1") return refuse();
    labels.push_back(label == "1" ? 1 : 0);
    for (size_t i = 0; i < kCriteoNumbers; ++i) {
      const std::string_view field = TakeField(fields);
      const auto value = field.empty() ? std::optional<int64_t>(0) : ParseWhole(field);
      if (!value) return refuse();
      numbers.push_back(std::log1p(static_cast<float>(std::max<int64_t>(*value, 0))));
    }
    for (auto& table : known) {
      const std::string_view field = TakeField(fields);
      if (number <= learned) {
        const auto entry = table.try_emplace(field, std::ssize(table) + 1).first;
        categories.push_back(entry->second % most_rows);
      } else {
        const auto entry = table.find(field);
        categories.push_back(entry == table.end() ? 0 : entry->second % most_rows);
      }
    }
  }
  if (learned == lines) {
    return BadInput(fmt::format(
        "{}: lines: found {}, expected at least 7: the last seventh is held out", path, lines));
  }
  Clicks clicks;
  const auto part = [&](int64_t begin, int64_t end) {
    const auto from = static_cast<size_t>(begin);
    const auto count = static_cast<size_t>(end - begin);
    return Rows(std::span(numbers).subspan(from * kCriteoNumbers, count * kCriteoNumbers),
                std::span(categories).subspan(from * kCriteoTables, count * kCriteoTables),
                std::span(labels).subspan(from, count));
  };
  clicks.learned = part(0, learned);
  clicks.held_out = part(learned, lines);
  for (const auto& table : known) clicks.rows.push_back(std::min(std::ssize(table) + 1, most_rows));
  return clicks;
}

Result<Clicks> ReadCaravan(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, context.limits));
  struct Part {
    std::vector<float> numbers;
    std::vector<int64_t> categories;
    std::vector<float> labels;
  };
  Part learned;
  Part held_out;
  std::string_view rest = file.text();
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakeLine(rest);
    const auto refuse = [&](std::string_view expected) {
      return BadInput(fmt::format("{}:{}: found '{}', expected {}", path, number,
                                  Printable(line.substr(0, 60)), expected));
    };
    if (static_cast<size_t>(std::ranges::count(line, '\t')) + 1 != kCaravanFields) {
      return refuse(kCaravanLine);
    }
    Part& part = number % kHeldOutOfCaravan == 0 ? held_out : learned;
    std::string_view fields = line;
    for (size_t i = 0; i < kCaravanFields; ++i) {
      const auto value = ParseWhole(TakeField(fields));
      const auto* const table =
          std::ranges::find(kCaravanTables, i, &std::pair<size_t, int64_t>::first);
      const bool is_label = i + 1 == kCaravanFields;
      if (!value || (is_label && *value != 0 && *value != 1)) {
        return refuse(kCaravanLine);
      }
      if (is_label) {
        part.labels.push_back(static_cast<float>(*value));
      } else if (table == kCaravanTables.end()) {
        part.numbers.push_back(static_cast<float>(*value));
      } else if (*value >= 1 && *value <= table->second) {
        part.categories.push_back(*value - 1);
      } else {
        return refuse(fmt::format("1 to {} as number {}", table->second, i + 1));
      }
    }
  }
  if (held_out.labels.empty()) {
    return BadInput(
        fmt::format("{}: lines: found {}, expected at least {}: every fifth is held out", path,
                    learned.labels.size(), kHeldOutOfCaravan));
  }
  Clicks clicks{.learned = Rows(learned.numbers, learned.categories, learned.labels),
                .held_out = Rows(held_out.numbers, held_out.categories, held_out.labels),
                .rows = {},
                .probabilities = {}};
  Standardise(clicks.learned.numbers, clicks.held_out.numbers);
  for (const auto& [field, rows] : kCaravanTables) clicks.rows.push_back(rows);
  return clicks;
}

}  // namespace etude::suite
