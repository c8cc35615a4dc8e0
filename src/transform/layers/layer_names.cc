#include "src/transform/layers/layer_names.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr int64_t kMostStep = 16;  // between the numbers of two layers

// A number between dots in a name.
struct NumberInName {
  std::string_view before;
  int64_t number = 0;
  std::string_view after;

  // Returns the name with another number.
  std::string With(int64_t other) const { return fmt::format("{}{}{}", before, other, after); }
};

std::vector<NumberInName> NumbersIn(std::string_view name) {
  std::vector<NumberInName> numbers;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const size_t end = std::min(name.find_first_of(". ", dot + 1), name.size());
    if (const auto number = ParseWhole(name.substr(dot + 1, end - dot - 1))) {
      numbers.push_back(
          {.before = name.substr(0, dot + 1), .number = *number, .after = name.substr(end)});
    }
  }
  return numbers;
}

}  // namespace

std::string LayerNames::Of(std::string_view name, size_t from, size_t to) const {
  const size_t other = from == 0 ? 1 : from - 1;
  if (other >= names_.size()) return std::string(name);
  for (const NumberInName& number : NumbersIn(name)) {
    for (int64_t step = 1; step <= kMostStep; ++step) {
      const int64_t before = number.number + (from == 0 ? step : -step);
      if (!names_[other].contains(number.With(before))) continue;
      const auto layers = static_cast<int64_t>(to) - static_cast<int64_t>(from);
      return number.With(number.number + layers * step);
    }
  }
  return std::string(name);
}

}  // namespace etude
