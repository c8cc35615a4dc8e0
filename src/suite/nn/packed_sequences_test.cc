#include <array>

#include <gtest/gtest.h>

#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"

namespace etude::suite {
namespace {

TEST(PackedSequences, HoldTheStepsThatAreThere) {
  const std::array<int64_t, 3> lengths = {3, 2, 2};
  const at::Tensor x = Arange(9).to(at::kFloat).view({3, 3, 1});
  const PackedSequences packed = Pack(x, lengths);
  EXPECT_TRUE(
      packed.values.flatten().equal(FromValues(std::array<float, 7>{0, 1, 2, 3, 4, 5, 6}, {7})));
  EXPECT_TRUE(packed.counts.equal(FromValues(std::array<int64_t, 3>{3, 3, 1}, {3})));
  const at::Tensor back = Unpack(packed);
  EXPECT_TRUE(back.narrow(0, 0, 2).equal(x.narrow(0, 0, 2)));
  EXPECT_TRUE(back[2][0].equal(x[2][0]));
}

TEST(PackedSequences, AGruDoesNotSeeWhatFillsThemUp) {
  Weights weights(at::kCPU);
  const Recurrent gru(Scope(weights),
                      {.cell = Recurrent::Cell::kGru, .in = 2, .hidden = 3, .bidirectional = true});
  const at::Tensor x = Normal({4, 2, 2}, 0, 1);
  const std::array<int64_t, 2> lengths = {4, 2};
  const at::Tensor together = Unpack(gru(Pack(x, lengths)));
  const auto [alone, state] = gru(x.narrow(0, 0, 2).narrow(1, 1, 1));
  EXPECT_TRUE(together.narrow(0, 0, 2).narrow(1, 1, 1).allclose(alone));
}

}  // namespace
}  // namespace etude::suite
