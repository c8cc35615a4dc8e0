#include "src/base/text/function_name.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(FunctionName, MangledNamesAreDecoded) {
  EXPECT_EQ(DemangledName("_ZN5aiter1fIfLi8EEEvPT_i"), "void aiter::f<float, 8>(float*, int)");
  EXPECT_EQ(DemangledName("_ZN5aiter1fEi.kd"), "aiter::f(int)") << "AMD's kernel descriptors";
  EXPECT_EQ(DemangledName("gemm.kd"), "gemm");
  EXPECT_EQ(BareFunctionName("_ZN5aiter1fIfLi8EEEvPT_i"), "f<float, 8>");
  for (const char* name : {"", "_Z", "_ZN", "_ZNE", "_Z9", "_ZN99999999999999999999999xE",
                           "aten::mm", "_Zebra", ".kd"}) {
    EXPECT_EQ(DemangledName(name), name);
    EXPECT_EQ(BareFunctionName(name), name);
    EXPECT_EQ(MangledFunctionPath(name), "") << name;
  }
}

TEST(FunctionName, PathsOfMangledNames) {
  EXPECT_EQ(MangledFunctionPath("_ZN5aiter26cross_device_reduce_2stageIDF16bLi8EEEvPT_"),
            "aiter::cross_device_reduce_2stage");
  EXPECT_EQ(MangledFunctionPath("_ZN12_GLOBAL__N_119one_shot_all_reduceEv"),
            "(anonymous namespace)::one_shot_all_reduce");
  EXPECT_EQ(MangledFunctionPath("_ZL6kernelPf"), "kernel");
  EXPECT_EQ(MangledFunctionPath("_Z6kernelPf.kd"), "kernel");
  EXPECT_EQ(MangledFunctionPath("_ZNK3std1fEv"), "std::f");
  EXPECT_EQ(MangledFunctionPath("_ZSt4swapIiEvRT_S1_"), "std::swap");
  EXPECT_EQ(MangledFunctionPath("_ZN4vllm6kernel"), "vllm::kernel") << "cut behind the name";
  EXPECT_EQ(MangledFunctionPath("kernel"), "");
}

// Each level repeats the previous one twice: the decoded name would have 2^40 parts.
TEST(FunctionName, NamesThatGrowWithoutBoundAreNotDecodedWhole) {
  std::string name = "_Z1fI1AIi";
  for (int i = 0; i < 40; ++i) name += "S_S_";
  EXPECT_EQ(DemangledName(name + "EEvv"), "f<…>");
  EXPECT_EQ(DemangledName("_ZN1a" + std::string("1fI") + std::string(2000, 'i') + "EEvv"),
            "a::f<…>");
}

}  // namespace
}  // namespace etude
