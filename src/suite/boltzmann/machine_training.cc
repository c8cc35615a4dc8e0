#include "src/suite/boltzmann/machine_training.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>

namespace etude::suite {
namespace {

constexpr size_t kWatched = 60;  // samples that the autocorrelation is read from
constexpr double kWindow = 5;
constexpr double kLeastRate = 0.1;

double Cosine(const SpinMoments& a, const SpinMoments& b) {
  const double dot = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double aa = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  const double bb = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
  return aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
}

SpinMoments Difference(SpinMoments a, const SpinMoments& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

double OverlapOf(SpinState state, SpinState pattern, size_t spins) {
  return static_cast<double>(spins) - 2.0 * std::popcount(state ^ pattern);
}

// Watches the chains of a fixed model, which begin in its exact distribution (kKept).
Autocorrelation Watch(const PlantedModes& target, const SpinModel& model,
                      const SpinDistribution& exact, std::span<const SpinState> data,
                      RandomStream& random, Chains& chains) {
  const size_t spins = model.spins();
  double mean = 0;
  double square = 0;
  for (size_t s = 0; s < exact.log_probability.size(); ++s) {
    const double overlap = OverlapOf(static_cast<SpinState>(s), target.pattern, spins);
    const double weight = std::exp(exact.log_probability[s]);
    mean += weight * overlap;
    square += weight * overlap * overlap;
  }
  chains.Restart(Draw(exact, chains.count(), random));
  std::vector<std::vector<double>> series(chains.count());
  for (size_t at = 0; at < kWatched; ++at) {
    const std::span<const SpinState> sample = chains.Sample(model, data);
    for (size_t i = 0; i < sample.size(); ++i) {
      series[i].push_back(OverlapOf(sample[i], target.pattern, spins));
    }
  }
  return IntegratedTime(series, mean, square - mean * mean);
}

}  // namespace

Autocorrelation IntegratedTime(const std::vector<std::vector<double>>& series, double mean,
                               double variance) {
  Autocorrelation found;
  const size_t length = series.empty() ? 0 : series.front().size();
  if (variance <= 0) return found;
  for (size_t lag = 1; 2 * lag <= length; ++lag) {
    double sum = 0;
    for (const std::vector<double>& chain : series) {
      for (size_t t = 0; t + lag < length; ++t) sum += (chain[t] - mean) * (chain[t + lag] - mean);
    }
    found.time += 2 * sum / (static_cast<double>(series.size() * (length - lag)) * variance);
    if (static_cast<double>(lag) >= kWindow * found.time) {
      found.time = std::max(found.time, 1.0);
      return found;
    }
  }
  found.is_least = true;
  return found;
}

Result<MachineRun> TrainMachine(const PlantedModes& target, const MachineOptions& options,
                                const RunContext& context) {
  const size_t spins = target.model.spins();
  RandomStream random(options.seed);
  const std::vector<SpinState> data = Draw(target.exact, options.data, random);
  const SpinMoments of_data = MomentsOf(data, spins);
  Chains chains(options.chains, spins, random.Next());
  const bool has_chains = options.chains.seeds != ChainSeeds::kExact;
  MachineRun run;
  SpinModel model(spins);
  SpinDistribution exact = Enumerate(model);
  for (int64_t update = 0; update < options.updates; ++update) {
    if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
    const SpinMoments ideal = Difference(of_data, exact.moments);
    const SpinMoments gradient =
        has_chains ? Difference(of_data, MomentsOf(chains.Sample(model, data), spins)) : ideal;
    run.gradient_error.push_back(1 - Cosine(gradient, ideal));
    const double part = static_cast<double>(update) / static_cast<double>(options.updates);
    AddToParameters(gradient, options.rate * (1 - (1 - kLeastRate) * part), model);
    exact = Enumerate(model);
    run.divergence.push_back(Divergence(target.exact, exact));
  }
  run.sweeps = chains.sweeps();
  if (KeepStates(options.chains.seeds)) {
    run.autocorrelation = Watch(target, model, exact, data, random, chains);
  }
  return run;
}

}  // namespace etude::suite
