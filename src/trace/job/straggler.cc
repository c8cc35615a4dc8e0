#include "src/trace/job/straggler.h"

#include <cstddef>

#include "src/base/text/quantity.h"

namespace etude {

std::optional<Straggler> ParseStraggler(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> rank = ParseWhole(text.substr(0, colon));
  const std::optional<double> factor = ParseDecimal(text.substr(colon + 1));
  if (!rank || *rank < 0 || !factor || !(*factor > 0)) return std::nullopt;
  return Straggler{.rank = *rank, .factor = *factor};
}

}  // namespace etude
