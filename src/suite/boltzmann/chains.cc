#include "src/suite/boltzmann/chains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace etude::suite {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"exact", "random",   "cd",
                                                    "pcd",   "annealed", "tempered"};

}  // namespace

std::string_view Name(ChainSeeds seeds) { return kNames[static_cast<size_t>(seeds)]; }

std::optional<ChainSeeds> ChainSeedsOf(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ChainSeeds>(found - kNames.begin());
}

GibbsSampler::GibbsSampler(const SpinModel& model) : tables_(model.spins()) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    for (size_t byte = 0; byte < kBytes; ++byte) {
      for (SpinState bits = 0; bits < 256; ++bits) {
        double sum = byte == 0 ? model.field(i) : 0;
        for (size_t j = 8 * byte; j < std::min(8 * byte + 8, tables_.size()); ++j) {
          sum += model.coupling(i, j) * SpinOf(bits, j - 8 * byte);
        }
        tables_[i][byte][bits] = sum;
      }
    }
  }
}

void GibbsSampler::Sweep(double beta, SpinState& state, RandomStream& random) const {
  for (size_t i = 0; i < tables_.size(); ++i) {
    double field = 0;
    for (size_t byte = 0; byte < kBytes; ++byte) {
      field += tables_[i][byte][state >> (8 * byte) & 0xFF];
    }
    const double up = 1 / (1 + std::exp(-2 * beta * field));
    const SpinState bit = SpinState{1} << i;
    state = random.UniformDouble() < up ? state | bit : state & ~bit;
  }
}

Chains::Chains(const ChainOptions& options, size_t spins, uint64_t seed)
    : options_(options), spins_(spins), random_(seed) {
  states_.resize(options_.chains);
  for (SpinState& state : states_) state = RandomState();
  if (options_.seeds == ChainSeeds::kTempered) {
    replicas_.resize(options_.chains * static_cast<size_t>(options_.replicas));
    for (SpinState& state : replicas_) state = RandomState();
  }
}

SpinState Chains::RandomState() { return static_cast<SpinState>(random_.Next() >> (64 - spins_)); }

std::span<const SpinState> Chains::Sample(const SpinModel& model, std::span<const SpinState> data) {
  const GibbsSampler sampler(model);
  Seed(model, sampler, data);
  for (SpinState& state : states_) {
    for (int64_t sweep = 0; sweep < options_.k; ++sweep) sampler.Sweep(1, state, random_);
  }
  sweeps_ += options_.k * std::ssize(states_);
  return states_;
}

void Chains::Seed(const SpinModel& model, const GibbsSampler& sampler,
                  std::span<const SpinState> data) {
  switch (options_.seeds) {
    case ChainSeeds::kExact:
    case ChainSeeds::kKept: return;
    case ChainSeeds::kRandom:
      for (SpinState& state : states_) state = RandomState();
      return;
    case ChainSeeds::kData:
      for (SpinState& state : states_) state = data[random_.Below(data.size())];
      return;
    case ChainSeeds::kAnnealed: {
      const int64_t sweeps = options_.annealing_sweeps;
      for (SpinState& state : states_) {
        state = RandomState();
        for (int64_t sweep = 1; sweep <= sweeps; ++sweep) {
          sampler.Sweep(static_cast<double>(sweep) / static_cast<double>(sweeps), state, random_);
        }
      }
      sweeps_ += sweeps * std::ssize(states_);
      return;
    }
    case ChainSeeds::kTempered: Temper(model, sampler); return;
  }
}

void Chains::Temper(const SpinModel& model, const GibbsSampler& sampler) {
  const auto replicas = static_cast<size_t>(options_.replicas);
  const auto beta = [&](size_t replica) {
    return static_cast<double>(replica + 1) / static_cast<double>(replicas);
  };
  for (size_t chain = 0; chain < states_.size(); ++chain) {
    SpinState* const ladder = &replicas_[chain * replicas];
    for (int64_t sweep = 0; sweep < options_.tempering_sweeps; ++sweep) {
      for (size_t i = 0; i < replicas; ++i) sampler.Sweep(beta(i), ladder[i], random_);
      for (size_t i = static_cast<size_t>(sweep) % 2; i + 1 < replicas; i += 2) {
        const double gain =
            (beta(i + 1) - beta(i)) * (model.LogWeight(ladder[i]) - model.LogWeight(ladder[i + 1]));
        if (gain >= 0 || random_.UniformDouble() < std::exp(gain))
          std::swap(ladder[i], ladder[i + 1]);
      }
    }
    states_[chain] = ladder[replicas - 1];
  }
  sweeps_ += options_.tempering_sweeps * std::ssize(replicas_);
}

}  // namespace etude::suite
