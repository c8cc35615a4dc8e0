#include "src/suite/boltzmann/planted_modes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>

namespace etude::suite {
namespace {

// Strength of the second pattern relative to the first: the modes differ in weight.
constexpr double kSecond = 1.1;
constexpr double kMaxField = 0.05;
constexpr double kMaxStrength = 12;
constexpr int kBisections = 24;

SpinModel WithStrength(const std::array<SpinState, 2>& patterns, const std::vector<double>& fields,
                       double strength) {
  const size_t spins = fields.size();
  SpinModel model(spins);
  for (size_t i = 0; i < spins; ++i) {
    model.AddField(i, fields[i]);
    for (size_t j = i + 1; j < spins; ++j) {
      const double first = SpinOf(patterns[0], i) * SpinOf(patterns[0], j);
      const double second = SpinOf(patterns[1], i) * SpinOf(patterns[1], j);
      model.AddCoupling(i, j, strength * (first + kSecond * second) / static_cast<double>(spins));
    }
  }
  return model;
}

}  // namespace

PlantedModes PlantModes(size_t spins, double barrier, uint64_t seed) {
  RandomStream random(seed);
  std::array<SpinState, 2> patterns;
  patterns[0] = static_cast<SpinState>(random.Next() >> (64 - spins));
  patterns[1] = patterns[0] ^ ((SpinState{1} << spins / 2) - 1);  // orthogonal
  std::vector<double> fields(spins);
  for (double& field : fields) {
    field = random.Within(-kMaxField, kMaxField);
  }
  PlantedModes made;
  made.pattern = patterns[1];
  double low = 0;
  double high = kMaxStrength;
  for (int i = 0; i < kBisections; ++i) {
    const double strength = (low + high) / 2;
    SpinModel model = WithStrength(patterns, fields, strength);
    const SpinDistribution exact = Enumerate(model);
    (BarrierAlong(made.pattern, exact, spins) < barrier ? low : high) = strength;
  }
  made.model = WithStrength(patterns, fields, low);
  made.exact = Enumerate(made.model);
  made.barrier = BarrierAlong(made.pattern, made.exact, spins);
  return made;
}

double BarrierAlong(SpinState pattern, const SpinDistribution& exact, size_t spins) {
  // By the number of spins that differ from the pattern.
  std::vector<double> energies(spins + 1);
  for (size_t s = 0; s < exact.log_probability.size(); ++s) {
    const auto away = static_cast<size_t>(std::popcount(static_cast<SpinState>(s) ^ pattern));
    energies[away] += std::exp(exact.log_probability[s]);
  }
  for (double& energy : energies) energy = -std::log(energy);
  const auto middle = energies.begin() + std::ssize(energies) / 2;
  const auto near = std::min_element(energies.begin(), middle);
  const auto far = std::min_element(middle, energies.end());
  return *std::max_element(near, far + 1) - std::max(*near, *far);
}

std::vector<SpinState> Draw(const SpinDistribution& exact, size_t count, RandomStream& random) {
  std::vector<double> cumulative(exact.log_probability.size());
  double sum = 0;
  for (size_t s = 0; s < cumulative.size(); ++s) {
    cumulative[s] = sum += std::exp(exact.log_probability[s]);
  }
  std::vector<SpinState> drawn(count);
  for (SpinState& state : drawn) {
    const double at = random.UniformDouble() * sum;
    const auto found = std::ranges::upper_bound(cumulative, at);
    state = static_cast<SpinState>(
        std::min(std::distance(cumulative.begin(), found), std::ssize(cumulative) - 1));
  }
  return drawn;
}

}  // namespace etude::suite
