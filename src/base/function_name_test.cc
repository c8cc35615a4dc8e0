#include "src/base/function_name.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(FunctionName, WithoutResultArgumentsAndNamespaces) {
  EXPECT_EQ(BareFunctionName("void f(int)"), "f");
  EXPECT_EQ(BareFunctionName("void at::native::vectorized_elementwise_kernel<4, "
                             "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, "
                             "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"),
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul> >");
  EXPECT_EQ(BareFunctionName("void at::native::(anonymous namespace)::softmax<4, "
                             "at::native::(anonymous namespace)::Epilogue>(float*, float const*)"),
            "softmax<4, Epilogue>");
  EXPECT_EQ(
      BareFunctionName("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(
      BareFunctionName("void f<a::g(b::C&)::{lambda()#3}::operator()() const::{lambda(a::D)#1}>()"),
      "f<g(C&)::{lambda()#3}::operator()() const::{lambda(D)#1}>");
}

TEST(FunctionName, OtherNamesStay) {
  for (const char* name :
       {"", "aten::mm", "nn.Module: Model.layers.0.act (NewGELUActivation)",
        "autograd::engine::evaluate_function: AddBackward0", "Memcpy HtoD (Pinned -> Device)",
        "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", ")(((", "((((a)", "(a)", "::", "a::"}) {
    EXPECT_EQ(BareFunctionName(name), name);
  }
}

}  // namespace
}  // namespace etude
