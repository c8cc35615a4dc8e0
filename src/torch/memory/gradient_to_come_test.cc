#include "src/torch/memory/gradient_to_come.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/t.h>

namespace etude {
namespace {

TEST(GradientToCome, OperatorsMakeNodesWhileItLives) {
  const std::vector<at::Tensor> slots = {at::ones({2, 2}), at::ones({2, 2}),
                                         at::ones({2}, at::kLong), at::Tensor()};
  const std::vector<SlotId> differentiated = {SlotId(0), SlotId(2), SlotId(3)};
  {
    const GradientToCome gradient(differentiated, differentiated, slots);
    const at::Tensor product = at::mul(slots[0], slots[1]);
    EXPECT_NE(product.grad_fn(), nullptr);
    EXPECT_FALSE(product.is_leaf());
    GradientToCome::TakeOff(product);
    EXPECT_EQ(product.grad_fn(), nullptr);
    EXPECT_FALSE(slots[1].requires_grad());
    EXPECT_FALSE(slots[2].requires_grad());
    // As for operators on views of parameters, or in place on non-leaf tensors.
    EXPECT_NE(slots[0].t().grad_fn(), nullptr);
    EXPECT_NO_THROW(slots[0].mul_(slots[1]));
  }
  EXPECT_FALSE(slots[0].requires_grad());
  EXPECT_EQ(at::mul(slots[0], slots[1]).grad_fn(), nullptr);
}

TEST(GradientToCome, OfAViewThatWasMadeBefore) {
  const at::Tensor base = at::ones({2, 3});
  const std::vector<at::Tensor> slots = {base.t()};
  base.mul_(2);
  const std::vector<SlotId> differentiated = {SlotId(0)};
  const GradientToCome gradient(differentiated, differentiated, slots);
  EXPECT_NE(at::mul(slots[0], slots[0]).grad_fn(), nullptr);
  EXPECT_FALSE(base.requires_grad());
  slots[0].mul_(2);
  EXPECT_EQ(base[0][0].item<float>(), 4);
}

TEST(GradientToCome, IsTakenOffWhatWasWrittenTo) {
  const at::Tensor base = at::ones({2, 3});
  const std::vector<at::Tensor> slots = {base.t(), at::ones({3, 2}), at::ones({3, 2})};
  const std::vector<SlotId> inputs = {SlotId(0), SlotId::None(), SlotId(1), SlotId(2)};
  const std::vector<SlotId> differentiated = {SlotId(1)};
  {
    const GradientToCome gradient(inputs, differentiated, slots);
    slots[0].mul_(slots[1]);
    slots[2].mul_(slots[1]);
    EXPECT_NE(base.grad_fn(), nullptr);
  }
  for (const at::Tensor& tensor : {base, slots[0], slots[2]}) {
    EXPECT_EQ(tensor.grad_fn(), nullptr);
    EXPECT_FALSE(tensor.requires_grad());
  }
}

}  // namespace
}  // namespace etude
