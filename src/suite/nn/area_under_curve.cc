#include "src/suite/nn/area_under_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace etude::suite {

double AreaUnderCurve(const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor all_scores = scores.contiguous();
  const at::Tensor all_labels = labels.contiguous();
  const auto* score = all_scores.const_data_ptr<float>();
  const auto* label = all_labels.const_data_ptr<float>();
  std::vector<std::pair<float, bool>> ordered;
  for (int64_t i = 0; i < all_scores.numel(); ++i) ordered.emplace_back(score[i], label[i] > 0);
  std::ranges::sort(ordered);
  double below = 0;  // samples with label 0 and a smaller score
  double yes = 0;
  double wins = 0;
  for (size_t begin = 0; begin < ordered.size();) {
    size_t end = begin;
    double yes_here = 0;
    for (; end < ordered.size() && ordered[end].first == ordered[begin].first; ++end) {
      yes_here += ordered[end].second ? 1 : 0;
    }
    const double no_here = static_cast<double>(end - begin) - yes_here;
    wins += yes_here * (below + no_here / 2);
    below += no_here;
    yes += yes_here;
    begin = std::max(end, begin + 1);  // a NaN score equals no score
  }
  return yes == 0 || below == 0 ? std::nan("") : wins / (yes * below);
}

}  // namespace etude::suite
