#include "src/formats/profile/comm_kernels.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(CommKernels, NcclByTheBeginningOfItsNames) {
  EXPECT_TRUE(IsCommKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"));
  EXPECT_TRUE(IsCommKernel("ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)"));
  EXPECT_TRUE(IsCommKernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"));
  EXPECT_FALSE(IsCommKernel("my_ncclKernel"));
}

TEST(CommKernels, KernelsThatCommunicateWithoutNccl) {
  struct Case {
    std::string_view kernel;
    CollectiveType type;
  };
  for (const auto& [kernel, type] : {
           Case{"void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
                CollectiveType::kUnknown},
           Case{"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int*)",
                CollectiveType::kAllReduce},
           Case{"void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*)",
                CollectiveType::kAllGather},
           Case{"two_shot_all_reduce_kernel_inplace", CollectiveType::kAllReduce},
           Case{"void two_shot_all_reduce_kernel<float, 16, 8, true>(float**)",
                CollectiveType::kUnknown},
           Case{"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)",
                CollectiveType::kAllReduce},
           Case{"void quickreduce::allreduce_prototype_twoshot<__half>(__half const*)",
                CollectiveType::kAllReduce},
           Case{"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<"
                "(flashinfer::Pattern)1>(flashinfer::Params)",
                CollectiveType::kAllReduce},
           Case{"void deep_ep::internode::dispatch<false, 8, true>(int4*)",
                CollectiveType::kAllToAll},
           Case{"void deep_ep::internode_ll::combine<true>(void*)", CollectiveType::kAllToAll},
           Case{"void dpsk::ep::internode::notify_dispatch<false, 4>(int const*)",
                CollectiveType::kAllToAll},
           Case{"void deep_ep::hybrid_ep::combine_kernel<16>(int)", CollectiveType::kAllToAll},
           Case{"void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)2, "
                "__nv_bfloat16, true>(flashinfer::Parameters)",
                CollectiveType::kAllReduce},
           Case{"void aiter::allgather_lastdim<std::bfloat16_t, 8>(aiter::RankData*)",
                CollectiveType::kAllGather},
           Case{"kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", CollectiveType::kUnknown},
           Case{"mscclKernel_Sum_hip_bfloat16_Simple_false(ncclDevComm*)",
                CollectiveType::kUnknown},
           Case{"void deep_ep::intranode::cached_notify_combine<8>(void**)",
                CollectiveType::kBarrier},
           Case{"ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
                CollectiveType::kAllReduce},
           Case{"ncclSymkDevKernel_ReduceScatter_LD_sum_f32(ncclSymkDevWorkArgs4K)",
                CollectiveType::kReduceScatter},
           Case{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                CollectiveType::kAllReduce},
           Case{"void mscclpp::collective::allgatherFullmesh2<false>(void*)",
                CollectiveType::kAllGather},
           Case{"void tensorrt_llm::kernels::ar_fusion::moe::moereduce_allreduce_fusion_kernel_"
                "oneshot_lamport<8>(int)",
                CollectiveType::kAllReduce},
           // Mangled names, as in profiles of ROCm
           Case{"_ZN5aiter26cross_device_reduce_2stageIDF16bLi8ELb0EEEvPNS_8RankDataES2_NS_"
                "11RankSignalsEPNS_6SignalEPT_ii",
                CollectiveType::kAllReduce},
           Case{"_ZN4vllm26cross_device_reduce_1stageI14__hip_bfloat16Li8EEEvPNS_8RankDataE",
                CollectiveType::kAllReduce},
           Case{"_ZN11quickreduce27allreduce_prototype_twoshotIDF16_EEvPKT_.kd",
                CollectiveType::kAllReduce},
           Case{"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
                CollectiveType::kAllReduce},
           Case{"_ZN12_GLOBAL__N_126multimem_all_gather_kernelILi16EEEvPc",
                CollectiveType::kAllGather},
           Case{"_ZN7deep_ep9intranode8dispatchILi8EEEvPi", CollectiveType::kAllToAll},
           Case{"hcom_allReduce__345_0_1", CollectiveType::kAllReduce},
       }) {
    EXPECT_TRUE(IsCommKernel(kernel)) << kernel;
    EXPECT_EQ(CollectiveOfKernel(kernel), type) << kernel;
  }
  for (const std::string_view kernel :
       {"void mine::dispatch<8>(int*)", "combine", "void moe::combine(float*)", "barrier", "",
        "void at::native::reduce_kernel<512, 1, internode::dispatch>(int)",
        "void moe::intranode::combine_bias_gelu<float>(float*)", "void intranode::dispatch(int*)",
        "void deep_ep::internode::dispatch_table(int*)", "one_shot_all_reduce_test_reference",
        "void mylib::cross_device_reduce_norm(float*)", "void a::oneShotAllReduceKernelTimer()",
        "_ZN5aiter33bf16gemm_fp32bf16_tn_64x64_splitkE", "_ZN4mine8dispatchILi8EEEvPi",
        "_ZN5aiter20all_reduce_referenceEv", "_Z", "void cross_device::reduce(int)",
        "triton_poi_fused_one_shot_all_reduce_0"}) {
    EXPECT_FALSE(IsCommKernel(kernel)) << kernel;
  }
}

TEST(CommKernels, NamesThatSpeakOfCommunication) {
  for (const std::string_view kernel :
       {"void mine::fusedAllReduceNorm<4>(float*)", "nvshmemi_put_signal", "my_all_gather(int)"}) {
    EXPECT_TRUE(SpeaksOfCommunication(kernel)) << kernel;
  }
  for (const std::string_view kernel :
       {"triton_poi_fused_all_gather_into_tensor_wait_tensor_0",
        "void gemm<AllReduceEpilogue>(int)", "void reduce_kernel<512>(int)", ""}) {
    EXPECT_FALSE(SpeaksOfCommunication(kernel)) << kernel;
  }
}

}  // namespace
}  // namespace etude
