#include "src/suite/data/text/bigram_model.h"

#include <cmath>

namespace etude::suite {

BigramModel::BigramModel(std::span<const int64_t> text, int64_t words)
    : counts_(static_cast<size_t>(words)),
      all_(std::ssize(text)),
      successors_(static_cast<size_t>(words)) {
  for (size_t i = 0; i < text.size(); ++i) {
    ++counts_[static_cast<size_t>(text[i])];
    if (i == 0) continue;
    Successors& successors = successors_[static_cast<size_t>(text[i - 1])];
    ++successors.counts[text[i]];
    ++successors.all;
  }
}

double BigramModel::Frequency(int64_t word) const {
  return static_cast<double>(counts_[static_cast<size_t>(word)] + 1) /
         static_cast<double>(all_ + std::ssize(counts_));
}

double BigramModel::Probability(int64_t before, int64_t word) const {
  const Successors& successors = successors_[static_cast<size_t>(before)];
  if (successors.all == 0) return Frequency(word);
  const auto found = successors.counts.find(word);
  const auto own = static_cast<double>(found == successors.counts.end() ? 0 : found->second);
  const auto different = static_cast<double>(successors.counts.size());
  return (own + different * Frequency(word)) / (static_cast<double>(successors.all) + different);
}

double BigramModel::Perplexity(std::span<const int64_t> text) const {
  double nats = 0;
  for (size_t i = 1; i < text.size(); ++i) nats -= std::log(Probability(text[i - 1], text[i]));
  return std::exp(nats / static_cast<double>(text.size() - 1));
}

}  // namespace etude::suite
