#include "src/suite/data/text/word_dictionary.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace etude::suite {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kNoWord = -2;  // origin of words that come from no word of their source

// Returns the words of a source from which translations may come.
Tokens Origins(const Tokens& source) {
  Tokens origins = {kNoWord};
  for (const int64_t word : source) {
    if (word != kUnknownToken) origins.push_back(word);
  }
  return origins;
}

}  // namespace

WordDictionary::WordDictionary(std::span<const Tokens> sources, std::span<const Tokens> targets) {
  for (int round = 0; round < kRounds; ++round) {
    decltype(probabilities_) counts;
    std::vector<double> shares;
    for (size_t i = 0; i < std::min(sources.size(), targets.size()); ++i) {
      const Tokens origins = Origins(sources[i]);
      for (const int64_t word : targets[i]) {
        if (word == kUnknownToken) continue;
        shares.clear();
        double sum = 0;
        for (const int64_t origin : origins) {
          // In the first round all translations are as probable.
          shares.push_back(round == 0 ? 1 : probabilities_[origin][word]);
          sum += shares.back();
        }
        for (size_t k = 0; k < origins.size() && sum > 0; ++k) {
          counts[origins[k]][word] += shares[k] / sum;
        }
      }
    }
    for (auto& [origin, words] : counts) {
      double sum = 0;
      for (const auto& [word, count] : words) sum += count;
      for (auto& [word, count] : words) count /= sum;
    }
    probabilities_ = std::move(counts);
  }
}

int64_t WordDictionary::Translate(int64_t word) const {
  const auto found = probabilities_.find(word);
  if (found == probabilities_.end()) return -1;
  int64_t best = -1;
  double most = 0;
  for (const auto& [translation, probability] : found->second) {
    if (probability < most || (probability == most && translation > best)) continue;
    best = translation;
    most = probability;
  }
  return best;
}

}  // namespace etude::suite
