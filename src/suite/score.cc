#include "src/suite/score.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace etude::suite {
namespace {

std::optional<double> MeanOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> VariationOf(const std::vector<double>& values) {
  const std::optional<double> mean = MeanOf(values);
  if (values.size() < 2 || *mean == 0) return std::nullopt;
  double squares = 0;
  for (const double value : values) squares += (value - *mean) * (value - *mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / *mean;
}

}  // namespace

Score ScoreOf(std::vector<RunRecord> runs) {
  Score score;
  score.runs = std::move(runs);
  if (score.runs.empty()) return score;
  const RunRecord& first = score.runs.front();
  score.task = first.task;
  score.target = first.target;
  score.baseline = first.baseline;

  std::vector<double> seconds;
  std::vector<double> epochs;
  std::vector<double> qualities;
  for (const RunRecord& run : score.runs) {
    if (run.quality) qualities.push_back(*run.quality);
    if (!run.reached) continue;
    seconds.push_back(run.seconds);
    epochs.push_back(run.epochs());
  }
  if (!qualities.empty()) {
    const auto middle = qualities.begin() + static_cast<ptrdiff_t>(qualities.size() / 2);
    std::ranges::nth_element(qualities, middle);
    score.quality = *middle;
  }
  const size_t missed = score.runs.size() - seconds.size();
  const bool drops = score.runs.size() >= kRunsToDrop;
  score.reached = missed == 0 || (drops && missed == 1);
  score.variation = VariationOf(epochs);
  if (!score.reached) return score;
  std::ranges::sort(seconds);
  if (drops) {
    seconds.erase(seconds.begin());
    if (missed == 0) seconds.pop_back();
  }
  score.seconds = MeanOf(seconds);
  return score;
}

}  // namespace etude::suite
