#include "src/suite/nn/search/cell_controller.h"

#include <cmath>
#include <map>
#include <string>

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"
#include "src/suite/nn/search/shared_cells.h"

namespace etude::suite {
namespace {

using enum CellActivation;

const CellArchitecture kCell = {{0, kTanh}, {0, kRelu}, {1, kIdentity}, {1, kSigmoid}};

TEST(CellArchitecture, LooseEndsAreReadByNoNode) {
  EXPECT_EQ(LooseEnds(kCell), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(LooseEnds({{0, kTanh}}), (std::vector<int64_t>{0}));
}

TEST(CellArchitecture, Text) {
  EXPECT_EQ(ToText(kCell), "1 tanh; 2 relu of 1; 3 identity of 2; 4 sigmoid of 2");
}

TEST(CellController, DrawsAsOftenAsItSays) {
  SeedTorch(1);
  Weights weights(at::kCPU);
  const CellController controller(Scope(weights, "controller"),
                                  {.nodes = 2, .hidden = 8, .temperature = 0.1});
  const at::NoGradGuard no_gradients;
  RandomStream random(1);
  std::map<std::string, double> said;
  std::map<std::string, int64_t> drawn;
  constexpr int64_t kDraws = 4'000;
  for (int64_t i = 0; i < kDraws; ++i) {
    const CellController::Drawn one = controller.Draw(random);
    said[ToText(one.cell)] = std::exp(one.log_probability.item<double>());
    ++drawn[ToText(one.cell)];
  }
  double sum = 0;
  for (const auto& [text, probability] : said) {
    sum += probability;
    const double share = static_cast<double>(drawn[text]) / kDraws;
    EXPECT_NEAR(share, probability, 5 * std::sqrt(probability / kDraws)) << text;
  }
  EXPECT_EQ(said.size(), 16U);
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(CellController, SameNumbersGiveTheSameCell) {
  Weights weights(at::kCPU);
  const CellController controller(Scope(weights, "controller"), {});
  RandomStream one(7);
  RandomStream other(7);
  EXPECT_EQ(controller.Draw(one).cell, controller.Draw(other).cell);
}

// A cell learns only by the weights that it uses.
TEST(SharedCells, GradientsAreThoseOfTheCell) {
  Weights weights(at::kCPU);
  const SharedCells cells(Scope(weights, "cells"), {.words = 5, .width = 4, .nodes = 4});
  at::Tensor state;
  const at::Tensor words = FromValues(std::vector<int64_t>{0, 1, 2, 3, 4, 0}, {3, 2});
  const at::Tensor logits = cells.Logits(cells(words, kCell, state));
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{3, 2, 5}));
  logits.square().sum().backward();
  for (const Weights::Entry& entry : weights.entries()) {
    const bool is_between = entry.name.starts_with("cells.nodes.");
    const bool is_used = entry.name == "cells.nodes.1.0.weight" ||
                         entry.name == "cells.nodes.2.1.weight" ||
                         entry.name == "cells.nodes.3.1.weight";
    EXPECT_EQ(entry.value.grad().defined(), !is_between || is_used) << entry.name;
  }
}

// A text read in two parts gives the same as at once, because the state continues.
TEST(SharedCells, StateContinues) {
  Weights weights(at::kCPU);
  const SharedCells cells(Scope(weights, "cells"), {.words = 5, .width = 4, .nodes = 4});
  const at::Tensor words = FromValues(std::vector<int64_t>{0, 1, 2, 3, 4, 0, 2, 2}, {4, 2});
  at::Tensor whole;
  at::Tensor parts;
  const at::Tensor at_once = cells(words, kCell, whole);
  cells(words.slice(0, 0, 1), kCell, parts);
  const at::Tensor rest = cells(words.slice(0, 1), kCell, parts);
  EXPECT_TRUE(at_once.slice(0, 1).allclose(rest, 0, 1e-6));
  EXPECT_TRUE(whole.allclose(parts, 0, 1e-6));
}

}  // namespace
}  // namespace etude::suite
