#include "src/suite/boltzmann/spin_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/base/random_stream.h"

namespace etude::suite {
namespace {

SpinModel RandomModel(size_t spins, uint64_t seed) {
  RandomStream random(seed);
  SpinModel model(spins);
  const auto number = [&] { return 2 * static_cast<double>(random.Uniform()) - 1; };
  for (size_t i = 0; i < spins; ++i) {
    model.AddField(i, number());
    for (size_t j = i + 1; j < spins; ++j) model.AddCoupling(i, j, number());
  }
  return model;
}

TEST(SpinModel, TwoSpinsByHand) {
  SpinModel model(2);
  model.AddField(0, 0.3);
  model.AddCoupling(0, 1, 0.5);
  EXPECT_NEAR(model.LogWeight(0b11), 0.3 + 0.5, 1e-15);
  EXPECT_NEAR(model.LogWeight(0b01), 0.3 - 0.5, 1e-15);
  EXPECT_NEAR(model.LogWeight(0b10), -0.3 - 0.5, 1e-15);
  EXPECT_NEAR(model.LocalField(0b00, 0), 0.3 - 0.5, 1e-15);
  // ⟨s_0⟩ = tanh h, ⟨s_0 s_1⟩ = tanh J: the spins' product is independent of s_0.
  const SpinDistribution exact = Enumerate(model);
  EXPECT_NEAR(exact.moments[0], std::tanh(0.3), 1e-12);
  EXPECT_NEAR(exact.moments[2], std::tanh(0.5), 1e-12);
  EXPECT_NEAR(exact.moments[1], std::tanh(0.3) * std::tanh(0.5), 1e-12);
}

TEST(SpinModel, EnumerationIsTheSumOverAllStates) {
  for (const size_t spins : {size_t{1}, size_t{5}, size_t{13}}) {
    const SpinModel model = RandomModel(spins, spins);
    const SpinDistribution exact = Enumerate(model);
    double sum = 0;
    for (SpinState s = 0; s < model.states(); ++s) sum += std::exp(model.LogWeight(s));
    SpinMoments moments(MomentCount(spins));
    for (SpinState s = 0; s < model.states(); ++s) {
      const double p = std::exp(model.LogWeight(s)) / sum;
      ASSERT_NEAR(exact.log_probability[s], std::log(p), 1e-9);
      const SpinMoments own = MomentsOf(std::vector<SpinState>{s}, spins);
      for (size_t i = 0; i < own.size(); ++i) moments[i] += p * own[i];
    }
    for (size_t i = 0; i < moments.size(); ++i) EXPECT_NEAR(exact.moments[i], moments[i], 1e-9);
  }
}

TEST(SpinModel, DivergenceIsZeroOfItselfAndOfTwoCoinsByHand) {
  const SpinDistribution a = Enumerate(RandomModel(6, 1));
  EXPECT_EQ(Divergence(a, a), 0);
  SpinModel coin(1);
  coin.AddField(0, 0.4);
  const double p = 1 / (1 + std::exp(-0.8));
  EXPECT_NEAR(Divergence(Enumerate(coin), Enumerate(SpinModel(1))),
              p * std::log(2 * p) + (1 - p) * std::log(2 * (1 - p)), 1e-12);
}

TEST(SpinModel, TheGradientClimbsTheLikelihood) {
  const SpinDistribution target = Enumerate(RandomModel(6, 2));
  SpinModel model(6);
  double before = Divergence(target, Enumerate(model));
  for (int update = 0; update < 300; ++update) {
    SpinMoments gradient = Enumerate(model).moments;
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = target.moments[i] - gradient[i];
    AddToParameters(gradient, 0.1, model);
    const double after = Divergence(target, Enumerate(model));
    ASSERT_LE(after, before + 1e-12);
    before = after;
  }
  EXPECT_LT(before, 0.05);
}

}  // namespace
}  // namespace etude::suite
