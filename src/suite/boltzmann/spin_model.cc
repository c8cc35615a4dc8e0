#include "src/suite/boltzmann/spin_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace etude::suite {
namespace {

// Steps between exact sums, which keep rounding errors of increments small.
constexpr uint32_t kFreshEvery = 4096;

// Transforms `values`, of a power of two of them, in place: value k becomes Σ_s (−1)^|s & k| v_s.
void WalshHadamard(std::vector<double>& values) {
  for (size_t half = 1; half < values.size(); half *= 2) {
    for (size_t block = 0; block < values.size(); block += 2 * half) {
      for (size_t i = block; i < block + half; ++i) {
        const double a = values[i];
        const double b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
}

// Calls `fn` with the position in SpinMoments and the bits of each spin and pair of spins.
template <typename Fn>
void ForEachMoment(size_t spins, const Fn& fn) {
  size_t at = 0;
  for (size_t i = 0; i < spins; ++i) fn(at++, i, i);
  for (size_t i = 0; i < spins; ++i) {
    for (size_t j = i + 1; j < spins; ++j) fn(at++, i, j);
  }
}

}  // namespace

double SpinModel::LogWeight(SpinState state) const {
  double sum = 0;
  for (size_t i = 0; i < spins_; ++i) {
    sum += SpinOf(state, i) * (LocalField(state, i) + fields_[i]) / 2;
  }
  return sum;
}

SpinMoments MomentsOf(std::span<const SpinState> sample, size_t spins) {
  SpinMoments moments(MomentCount(spins));
  for (const SpinState state : sample) {
    ForEachMoment(spins, [&](size_t at, size_t i, size_t j) {
      moments[at] += SpinOf(state, i) * (i == j ? 1.0 : SpinOf(state, j));
    });
  }
  for (double& moment : moments) moment /= static_cast<double>(sample.size());
  return moments;
}

void AddToParameters(const SpinMoments& moments, double factor, SpinModel& model) {
  ForEachMoment(model.spins(), [&](size_t at, size_t i, size_t j) {
    if (i == j) {
      model.AddField(i, factor * moments[at]);
    } else {
      model.AddCoupling(i, j, factor * moments[at]);
    }
  });
}

SpinDistribution Enumerate(const SpinModel& model) {
  const size_t spins = model.spins();
  SpinDistribution all;
  std::vector<double>& logs = all.log_probability;
  logs.resize(model.states());
  std::vector<double> fields(spins);
  SpinState state = 0;
  double log_weight = 0;
  for (uint32_t step = 0; step < model.states(); ++step) {
    if (step != 0) {
      const auto i = static_cast<size_t>(std::countr_zero(step));  // the spin that flips
      const double flip = -2 * SpinOf(state, i);
      log_weight += flip * fields[i];
      state ^= SpinState{1} << i;
      for (size_t j = 0; j < spins; ++j) fields[j] += flip * model.coupling(i, j);
    }
    if (step % kFreshEvery == 0) {
      log_weight = model.LogWeight(state);
      for (size_t j = 0; j < spins; ++j) fields[j] = model.LocalField(state, j);
    }
    logs[state] = log_weight;
  }
  const double max = *std::ranges::max_element(logs);
  std::vector<double> weights(logs.size());
  std::ranges::transform(logs, weights.begin(), [max](double log) { return std::exp(log - max); });
  WalshHadamard(weights);
  const double sum = weights[0];
  for (double& log : logs) log -= max + std::log(sum);
  all.moments.resize(MomentCount(spins));
  ForEachMoment(spins, [&](size_t at, size_t i, size_t j) {
    // A set bit is +1 here and −1 in the transform.
    all.moments[at] =
        i == j ? -weights[size_t{1} << i] / sum : weights[size_t{1} << i | size_t{1} << j] / sum;
  });
  return all;
}

double Divergence(const SpinDistribution& p, const SpinDistribution& q) {
  double sum = 0;
  for (size_t s = 0; s < p.log_probability.size(); ++s) {
    sum += std::exp(p.log_probability[s]) * (p.log_probability[s] - q.log_probability[s]);
  }
  return std::max(sum, 0.0);
}

}  // namespace etude::suite
