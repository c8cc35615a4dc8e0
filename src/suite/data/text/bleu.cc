#include "src/suite/data/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace etude::suite {
namespace {

// Returns how often each sequence of `length` words occurs.
std::map<Tokens, int64_t> RunsOf(const Tokens& text, size_t length) {
  std::map<Tokens, int64_t> runs;
  for (size_t begin = 0; begin + length <= text.size(); ++begin) {
    const auto first = text.begin() + static_cast<ptrdiff_t>(begin);
    ++runs[Tokens(first, first + static_cast<ptrdiff_t>(length))];
  }
  return runs;
}

}  // namespace

void Bleu::Add(const Tokens& said, const Tokens& reference) {
  said_ += std::ssize(said);
  reference_ += std::ssize(reference);
  for (size_t length = 1; length <= kLongestRun; ++length) {
    const std::map<Tokens, int64_t> wanted = RunsOf(reference, length);
    for (const auto& [run, count] : RunsOf(said, length)) {
      runs_[length - 1] += count;
      const auto found = wanted.find(run);
      if (found != wanted.end()) matches_[length - 1] += std::min(count, found->second);
    }
  }
}

double Bleu::score() const {
  double logarithms = 0;
  double smoothing = 1;
  for (size_t i = 0; i < kLongestRun; ++i) {
    if (runs_[i] == 0) return 0;
    auto matches = static_cast<double>(matches_[i]);
    if (matches_[i] == 0) {
      if (i == 0) return 0;
      smoothing *= 2;
      matches = 1 / smoothing;
    }
    logarithms += std::log(matches / static_cast<double>(runs_[i])) / kLongestRun;
  }
  const double brevity = 1 - static_cast<double>(reference_) / static_cast<double>(said_);
  return 100 * std::exp(logarithms + std::min(0.0, brevity));
}

}  // namespace etude::suite
