#include "src/suite/data/text/rouge.h"

#include <algorithm>
#include <vector>

namespace etude::suite {

double RougeL(const Tokens& said, const Tokens& reference) {
  // lengths[j]: of the longest common subsequence with the first j words of the reference.
  std::vector<size_t> lengths(reference.size() + 1);
  for (const int64_t word : said) {
    size_t diagonal = 0;
    for (size_t j = 1; j <= reference.size(); ++j) {
      const size_t above = lengths[j];
      lengths[j] = word == reference[j - 1] ? diagonal + 1 : std::max(above, lengths[j - 1]);
      diagonal = above;
    }
  }
  // 2PR / (P + R), of P = common / said and R = common / reference.
  const size_t both = said.size() + reference.size();
  return both == 0 ? 0 : 2 * static_cast<double>(lengths.back()) / static_cast<double>(both);
}

}  // namespace etude::suite
