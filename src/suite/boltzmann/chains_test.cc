#include "src/suite/boltzmann/chains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/suite/boltzmann/planted_modes.h"

namespace etude::suite {
namespace {

double MaxError(const SpinMoments& a, const SpinMoments& b) {
  double max = 0;
  for (size_t i = 0; i < a.size(); ++i) max = std::max(max, std::abs(a[i] - b[i]));
  return max;
}

TEST(Chains, NamesAreReadBack) {
  for (const ChainSeeds seeds : {ChainSeeds::kExact, ChainSeeds::kData, ChainSeeds::kTempered}) {
    EXPECT_EQ(ChainSeedsOf(Name(seeds)), seeds);
  }
  EXPECT_EQ(ChainSeedsOf("quantum"), std::nullopt);
}

// Where no barrier separates modes, all chains find the exact means.
TEST(Chains, AllConvergeOnALowBarrier) {
  const PlantedModes target = PlantModes(8, 0, 3);
  RandomStream random(1);
  const std::vector<SpinState> data = Draw(target.exact, 20'000, random);
  EXPECT_LT(MaxError(MomentsOf(data, 8), target.exact.moments), 0.03);
  for (const ChainSeeds seeds : {ChainSeeds::kRandom, ChainSeeds::kData, ChainSeeds::kKept,
                                 ChainSeeds::kAnnealed, ChainSeeds::kTempered}) {
    Chains chains({.seeds = seeds, .chains = 20'000, .k = 20}, 8, 5);
    const auto sample = chains.Sample(target.model, data);
    EXPECT_LT(MaxError(MomentsOf(sample, 8), target.exact.moments), 0.03) << Name(seeds);
  }
}

TEST(Chains, SweepsAreCountedOverChainsAndReplicas) {
  const PlantedModes target = PlantModes(4, 0, 3);
  const ChainOptions base = {
      .chains = 10, .k = 3, .annealing_sweeps = 7, .tempering_sweeps = 2, .replicas = 5};
  const auto sweeps = [&](ChainSeeds seeds) {
    ChainOptions options = base;
    options.seeds = seeds;
    Chains chains(options, 4, 1);
    const std::vector<SpinState> data = {0};
    chains.Sample(target.model, data);
    return chains.sweeps();
  };
  EXPECT_EQ(sweeps(ChainSeeds::kRandom), 30);
  EXPECT_EQ(sweeps(ChainSeeds::kKept), 30);
  EXPECT_EQ(sweeps(ChainSeeds::kAnnealed), 30 + 70);
  EXPECT_EQ(sweeps(ChainSeeds::kTempered), 30 + 100);
}

TEST(PlantModes, TheBarrierIsTheOneAskedFor) {
  for (const double barrier : {2.0, 8.0}) {
    const PlantedModes target = PlantModes(12, barrier, 11);
    EXPECT_NEAR(target.barrier, barrier, 0.01);
    EXPECT_NEAR(BarrierAlong(target.pattern, target.exact, 12), target.barrier, 1e-12);
  }
}

// Two spins without couplings: overlaps 2, 0 and −2 with weights 1, 2 and 1; no barrier. A coupling
// of J makes the weights e^J, 2 e^−J, e^J: a barrier of 2 J − ln 2.
TEST(PlantModes, ABarrierByHand) {
  SpinModel model(2);
  EXPECT_NEAR(BarrierAlong(0b11, Enumerate(model), 2), 0, 1e-12);
  model.AddCoupling(0, 1, 2);
  EXPECT_NEAR(BarrierAlong(0b11, Enumerate(model), 2), 4 - std::log(2), 1e-12);
}

}  // namespace
}  // namespace etude::suite
