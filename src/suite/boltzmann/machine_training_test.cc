#include "src/suite/boltzmann/machine_training.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "src/suite/boltzmann/machine_study.h"

namespace etude::suite {
namespace {

// A chain x' = a x + noise has ρ(t) = a^t, so 1 + 2 Σ ρ = (1 + a) / (1 − a).
TEST(IntegratedTime, OfAnAutoregression) {
  RandomStream random(3);
  const double a = 0.8;
  std::vector<std::vector<double>> series(400);
  for (std::vector<double>& chain : series) {
    double x = 0;
    for (int t = 0; t < 500; ++t) {
      double noise = 0;
      for (int i = 0; i < 12; ++i) noise += static_cast<double>(random.Uniform()) - 0.5;
      x = a * x + std::sqrt(1 - a * a) * noise;
      if (t >= 100) chain.push_back(x);
    }
  }
  const Autocorrelation found = IntegratedTime(series, 0, 1);
  EXPECT_FALSE(found.is_least);
  EXPECT_NEAR(found.time, 9, 0.7);
}

TEST(IntegratedTime, IsALowerBoundWhereNothingMoves) {
  const std::vector<std::vector<double>> series = {std::vector<double>(20, 1.0),
                                                   std::vector<double>(20, -1.0)};
  const Autocorrelation found = IntegratedTime(series, 0, 1);
  EXPECT_TRUE(found.is_least);
  EXPECT_DOUBLE_EQ(found.time, 21);
}

MachineRun Trained(const PlantedModes& target, ChainSeeds seeds, int64_t k) {
  MachineOptions options;
  options.chains = {.seeds = seeds, .chains = 100, .k = k};
  options.updates = 150;
  return TrainMachine(target, options, {}).value();
}

TEST(TrainMachine, ExactMeansReachTheFloorAndHaveNoError) {
  const PlantedModes target = PlantModes(8, 3, 11);
  const MachineRun run = Trained(target, ChainSeeds::kExact, 0);
  EXPECT_LT(run.divergence.back(), 0.03);
  EXPECT_LT(run.gradient_error.back(), 1e-9);
  EXPECT_EQ(run.sweeps, 0);
}

// Kept chains (PCD) stay in their mode where the barrier is high; tempered ones do not.
TEST(TrainMachine, TemperedSeedsCrossAHighBarrier) {
  const PlantedModes target = PlantModes(10, 9, 11);
  const MachineRun kept = Trained(target, ChainSeeds::kKept, 1);
  const MachineRun tempered = Trained(target, ChainSeeds::kTempered, 1);
  EXPECT_LT(tempered.divergence.back(), 0.25);
  EXPECT_GT(kept.divergence.back(), 2 * tempered.divergence.back());
  EXPECT_TRUE(kept.autocorrelation.is_least);
  EXPECT_LT(tempered.autocorrelation.time, 20);
}

TEST(TrainMachine, RepeatsAndStops) {
  const PlantedModes target = PlantModes(6, 1, 11);
  EXPECT_EQ(Trained(target, ChainSeeds::kAnnealed, 1).divergence,
            Trained(target, ChainSeeds::kAnnealed, 1).divergence);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(TrainMachine(target, {}, {.stop = &stop}).error().code, ErrorCode::kInterrupted);
}

TEST(RunStudy, LeavesOutWhatCannotLearn) {
  StudyOptions options;
  options.spins = 6;
  options.barriers = {1};
  options.seeds = {ChainSeeds::kExact, ChainSeeds::kData, ChainSeeds::kAnnealed};
  options.ks = {0, 1};
  options.runs = 2;
  options.machine.updates = 5;
  options.machine.chains.chains = 20;
  const std::vector<StudyRow> rows = RunStudy(options, {}).value();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].seeds, ChainSeeds::kData);
  EXPECT_EQ(rows[1].k, 1);
  EXPECT_EQ(rows[1].divergences.size(), 2u);
  EXPECT_EQ(rows[3].sweeps_per_sample, 51);
  EXPECT_EQ(StudyTables(rows).size(), 1u);
}

}  // namespace
}  // namespace etude::suite
