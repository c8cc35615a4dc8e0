#include "src/base/text/nearest.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

// Cost of a missing, extra, wrong or swapped letter. Case breaks ties among equally near names.
constexpr size_t kWrong = 8;
constexpr size_t kOtherCase = 1;

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j * kWrong;
  const auto same = [&](size_t i, size_t j) { return Lower(a[i - 1]) == Lower(b[j - 1]); };
  const auto cost = [&](size_t i, size_t j) {
    if (a[i - 1] == b[j - 1]) return size_t{0};
    return same(i, j) ? kOtherCase : kWrong;
  };
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i * kWrong;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + cost(i, j), last[j] + kWrong, row[j - 1] + kWrong});
      const bool swapped = i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + kWrong);
    }
  }
  return row.back();
}

size_t PartBegin(std::string_view name) {
  const size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? 0 : colons + 2;
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const size_t begin = PartBegin(word);
  std::string best;
  // Only letters after the last "::" count towards the tolerance.
  size_t best_distance = ((word.size() - begin + 1) / 3 + 1) * kWrong;
  for (const std::string& candidate : candidates) {
    std::string_view name = candidate;
    if (begin == 0) name.remove_prefix(PartBegin(name));
    // The length difference alone exceeds the limit: names in traces may have any length.
    const size_t longer = std::max(name.size(), word.size()) - std::min(name.size(), word.size());
    if (longer * kWrong >= best_distance) continue;
    const size_t distance = Distance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = Nearest(word, names);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

std::string MeantOrAll(std::string_view word, const std::vector<std::string>& names) {
  const std::string hint = DidYouMean(word, names);
  return hint.empty() ? fmt::format(", expected one of {}", fmt::join(names, ", ")) : hint;
}

}  // namespace etude
