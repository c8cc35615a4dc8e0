#include "src/suite/nn/csr_weight.h"

#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// A layer of 5 outputs and 7 inputs with a third of its weights; one output has none.
struct Layer {
  Layer() {
    SeedTorch(11);
    mask = Uniform({5, 7}, 0, 1).lt(1.0 / 3).to(at::kFloat);
    mask[2].zero_();
    mask[0][3] = 1;
    weight = Normal({5, 7}, 0, 1).mul(mask).requires_grad_();
    bias = Normal({5}, 0, 1).requires_grad_();
    x = Normal({2, 3, 7}, 0, 1).requires_grad_();
    csr.SetMask(mask);
  }
  // Returns the product, and sets gradients of a sum with weights.
  at::Tensor Run(bool sparse) {
    for (at::Tensor* each : {&weight, &bias, &x}) each->mutable_grad().reset();
    const at::Tensor y = sparse ? csr.Product(x, weight, bias) : at::linear(x, weight, bias);
    y.mul(Arange(30).reshape({2, 3, 5})).sum().backward();
    return y.detach();
  }

  at::Tensor mask;
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor x;
  CsrWeight csr;
};

bool Close(const at::Tensor& a, const at::Tensor& b) { return a.allclose(b, 1e-5, 1e-5); }

class CsrWeightTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!CsrWeight::IsAvailable()) GTEST_SKIP() << "PyTorch without MKL";
  }
};

TEST_F(CsrWeightTest, ProductsAndGradientsEqualThoseOfMasks) {
  Layer layer;
  const at::Tensor expected = layer.Run(/*sparse=*/false);
  const at::Tensor of_weight = layer.weight.grad();
  const at::Tensor of_bias = layer.bias.grad();
  const at::Tensor of_x = layer.x.grad();
  EXPECT_TRUE(Close(layer.Run(/*sparse=*/true), expected));
  EXPECT_TRUE(Close(layer.weight.grad(), of_weight.mul(layer.mask)));
  EXPECT_TRUE(layer.weight.grad().masked_fill(layer.mask.ne(0), 0).eq(0).all().item<bool>());
  EXPECT_TRUE(Close(layer.bias.grad(), of_bias));
  EXPECT_TRUE(Close(layer.x.grad(), of_x));
  layer.csr.set_all_gradients(true);
  layer.Run(/*sparse=*/true);
  EXPECT_TRUE(Close(layer.weight.grad(), of_weight)) << "also outside of the mask";
}

TEST_F(CsrWeightTest, FollowsTheWeightAndTheMask) {
  Layer layer;
  {
    const at::NoGradGuard no_gradients;
    layer.weight.mul_(2);
  }
  EXPECT_TRUE(Close(layer.Run(/*sparse=*/true), layer.Run(/*sparse=*/false)));
  {
    const at::NoGradGuard no_gradients;
    layer.mask.fill_(0)[4][6] = 1;
    layer.weight.copy_(layer.mask);
  }
  layer.csr.SetMask(layer.mask);
  EXPECT_TRUE(Close(layer.Run(/*sparse=*/true), layer.Run(/*sparse=*/false)));
}

TEST_F(CsrWeightTest, InputsWithoutGradientsAndLayersWithoutBias) {
  Layer layer;
  const at::Tensor x = layer.x.detach();
  const at::Tensor y = layer.csr.Product(x, layer.weight, {});
  EXPECT_TRUE(Close(y, at::linear(x, layer.weight)));
  y.sum().backward();
  EXPECT_TRUE(layer.weight.grad().defined());
  const at::NoGradGuard no_gradients;
  EXPECT_FALSE(layer.csr.Product(x, layer.weight, layer.bias).requires_grad());
}

TEST_F(CsrWeightTest, AMaskWithoutWeights) {
  Layer layer;
  {
    const at::NoGradGuard no_gradients;
    layer.mask.zero_();
    layer.weight.zero_();
  }
  layer.csr.SetMask(layer.mask);
  EXPECT_TRUE(Close(layer.Run(/*sparse=*/true), layer.Run(/*sparse=*/false)));
}

}  // namespace
}  // namespace etude::suite
