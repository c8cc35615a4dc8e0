#include "src/suite/data/captions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "src/suite/nn/functional.h"

namespace etude::suite {

CaptionBatch SideBySide(const std::vector<Caption>& captions) {
  size_t longest = 0;
  for (const Caption& caption : captions) longest = std::max(longest, caption.size());
  const size_t steps = longest + 1;
  std::vector<int64_t> before(captions.size() * steps, kEndWord);
  std::vector<int64_t> places;
  std::vector<int64_t> next;
  for (size_t row = 0; row < captions.size(); ++row) {
    const Caption& caption = captions[row];
    before[row * steps] = kStartWord;
    std::ranges::copy(caption, before.begin() + static_cast<ptrdiff_t>(row * steps + 1));
    for (size_t i = 0; i <= caption.size(); ++i) {
      places.push_back(static_cast<int64_t>(row * steps + i));
      next.push_back(i < caption.size() ? caption[i] : kEndWord);
    }
  }
  using Values = std::span<const int64_t>;
  return {FromValues(Values(before), {std::ssize(captions), static_cast<int64_t>(steps)}),
          FromValues(Values(places), {std::ssize(places)}),
          FromValues(Values(next), {std::ssize(next)})};
}

double UnigramPerplexity(const std::vector<Caption>& train, const std::vector<Caption>& test,
                         int64_t words) {
  std::vector<double> counts(static_cast<size_t>(words), 1);
  // The start is never predicted.
  counts[kStartWord] = 0;
  double all = static_cast<double>(words - 1);
  for (const Caption& caption : train) {
    for (const int64_t word : caption) ++counts[static_cast<size_t>(word)];
    ++counts[kEndWord];
    all += static_cast<double>(caption.size() + 1);
  }
  double nats = 0;
  double said = 0;
  for (const Caption& caption : test) {
    for (const int64_t word : caption) nats -= std::log(counts[static_cast<size_t>(word)] / all);
    nats -= std::log(counts[kEndWord] / all);
    said += static_cast<double>(caption.size() + 1);
  }
  return std::exp(nats / said);
}

}  // namespace etude::suite
