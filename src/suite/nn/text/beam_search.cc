#include "src/suite/nn/text/beam_search.h"

#include <cmath>
#include <limits>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double LengthPenalty(size_t words) { return std::pow((5 + static_cast<double>(words)) / 6, 0.6); }

}  // namespace

std::vector<Tokens> Search(const BeamSearch& search, const at::Device& device,
                           const std::function<at::Tensor(const at::Tensor& before)>& next) {
  const int64_t rows = search.texts * search.beams;
  at::Tensor texts = Zeros({rows, 1}, at::kLong).fill_(kStartToken).to(device);
  // All beams of a text begin alike, so only the first counts.
  at::Tensor scores = Full({search.texts, search.beams}, kNever);
  scores.select(1, 0).fill_(0);
  scores = scores.to(device);
  at::Tensor ended = Zeros({rows, 1}, at::kBool).to(device);
  const at::Tensor first_rows = (Arange(search.texts) * search.beams).unsqueeze(1).to(device);
  for (int64_t step = 0; step < search.longest && !ended.all().item<bool>(); ++step) {
    at::Tensor chances = next(texts).to(at::kFloat).clone();
    chances.slice(1, kPaddingToken, kStartToken + 1).fill_(kNever);
    chances.select(1, kUnknownToken).fill_(kNever);
    at::Tensor only_padding = Full({1, chances.size(1)}, kNever);
    only_padding.select(1, kPaddingToken).fill_(0);
    chances = Where(ended, only_padding.to(device), chances);
    const int64_t words = chances.size(1);
    const at::Tensor sums =
        (scores.unsqueeze(2) + chances.view({search.texts, search.beams, words})).flatten(1);
    at::Tensor places;
    std::tie(scores, places) = sums.topk(search.beams, 1);
    const at::Tensor row = (first_rows + places.div(words, "floor")).flatten();
    const at::Tensor word = places.remainder(words).view({rows, 1});
    texts = Cat({texts.index_select(0, row), word}, 1);
    ended = word.le(kEndToken);
  }
  std::vector<Tokens> found;
  const at::Tensor here = texts.cpu().contiguous();
  const at::Tensor sums = scores.cpu().contiguous();
  const auto* number = here.const_data_ptr<int64_t>();
  const auto* sum = sums.const_data_ptr<float>();
  for (int64_t text = 0; text < search.texts; ++text) {
    Tokens best;
    double most = kNever;
    for (int64_t beam = 0; beam < search.beams; ++beam, ++sum, number += here.size(1)) {
      Tokens words;
      for (int64_t i = 1; i < here.size(1) && number[i] > kEndToken; ++i) {
        words.push_back(number[i]);
      }
      const double score = static_cast<double>(*sum) / LengthPenalty(words.size());
      if (score <= most) continue;
      most = score;
      best = std::move(words);
    }
    found.push_back(std::move(best));
  }
  return found;
}

}  // namespace etude::suite
