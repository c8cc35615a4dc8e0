#include "src/formats/profile/comm_kernels.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/base/text/ascii.h"
#include "src/base/text/function_name.h"

namespace etude {
namespace {

// Prefixes of kernels whose names continue with the communication.
constexpr auto kCommKernels = std::to_array<std::string_view>({
    "ncclKernel",     // NCCL before 2.19, RCCL
    "ncclDevKernel",  // NCCL since
    "mscclKernel",    // RCCL with MSCCL
    // Symmetric memory: NCCL 2.27, and since 2.28
    "ncclSymDevKernel", "ncclSymkDevKernel",
    "hcom_",  // HCCL on Ascend devices
});

// Functions of kernels that communicate without NCCL, by name. Common names also have namespaces.
struct CommFunction {
  std::string_view space;  // suffix of the namespaces; "": any
  std::string_view name;   // "a*" matches any name that begins with a
  CollectiveType type;
};
constexpr auto kCommFunctions = std::to_array<CommFunction>({
    {"", "rcclGenericKernel*", CollectiveType::kUnknown},
    // PyTorch's symmetric memory, and FBGEMM. A template argument makes the two-shot kernel a
    // reduce-scatter.
    {"", "multimem_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "multimem_one_shot_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "multimem_one_shot_reduce_kernel", CollectiveType::kReduce},
    {"", "multimem_all_gather_kernel", CollectiveType::kAllGather},
    {"", "one_shot_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "one_shot_all_reduce", CollectiveType::kAllReduce},
    {"", "two_shot_all_reduce_kernel_inplace", CollectiveType::kAllReduce},
    {"", "two_shot_all_reduce_kernel", CollectiveType::kUnknown},
    {"", "two_shot_all_reduce", CollectiveType::kAllReduce},
    // PyTorch on NVSHMEM
    {"", "allToAllV", CollectiveType::kAllToAll},
    {"", "allToAllV_2d", CollectiveType::kAllToAll},
    // vLLM, SGLang, AITER and their quick reduce
    {"", "cross_device_reduce_1stage*", CollectiveType::kAllReduce},
    {"", "cross_device_reduce_2stage*", CollectiveType::kAllReduce},
    {"", "allreduce_prototype*", CollectiveType::kAllReduce},
    {"", "reduce_scatter_cross_device_store*", CollectiveType::kReduceScatter},
    {"", "allgather_lastdim*", CollectiveType::kAllGather},
    {"", "allgather_vec*", CollectiveType::kAllGather},
    {"", "allgather_naive*", CollectiveType::kAllGather},
    // MSCCL++: its collectives, and the executor of plans for any collective
    {"mscclpp::collective", "allreduce*", CollectiveType::kAllReduce},
    {"mscclpp::collective", "allgather*", CollectiveType::kAllGather},
    {"mscclpp::collective", "alltoall*", CollectiveType::kAllToAll},
    {"mscclpp::collective", "reduceScatter*", CollectiveType::kReduceScatter},
    {"mscclpp::collective", "broadcast*", CollectiveType::kBroadcast},
    {"mscclpp", "executionKernel*", CollectiveType::kUnknown},
    // XLA's own kernels
    {"", "AllReduceKernelImpl", CollectiveType::kAllReduce},
    // TensorRT-LLM and FlashInfer
    {"", "allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "moereduce_allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "moefinalize_allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "lowPrecisionTwoShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "lowPrecisionTwoShotHierAllReduceKernel", CollectiveType::kAllReduce},
    {"", "oneShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "twoShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "oneshotAllreduceFusionKernel", CollectiveType::kAllReduce},
    {"", "twoshotAllreduceKernel", CollectiveType::kAllReduce},
    {"", "moeA2ADispatchKernel", CollectiveType::kAllToAll},
    {"", "moeA2ACombineKernel", CollectiveType::kAllToAll},
    // TransformerEngine's overlap: all-gathers, reduce-scatters, pieces of rings
    {"", "userbuffers_fp16_sum_inplace_gpu_*", CollectiveType::kUnknown},
    {"", "kuserbuffers_push*", CollectiveType::kUnknown},
    // DeepEP (deep_ep, dpsk::ep), and its hybrid mode
    {"ep::intranode", "dispatch", CollectiveType::kAllToAll},
    {"ep::intranode", "combine", CollectiveType::kAllToAll},
    {"ep::intranode", "notify_dispatch", CollectiveType::kAllToAll},
    {"ep::intranode", "cached_notify*", CollectiveType::kBarrier},
    {"ep::intranode", "barrier", CollectiveType::kBarrier},
    {"ep::internode", "dispatch", CollectiveType::kAllToAll},
    {"ep::internode", "combine", CollectiveType::kAllToAll},
    {"ep::internode", "notify_dispatch", CollectiveType::kAllToAll},
    {"ep::internode", "cached_notify*", CollectiveType::kBarrier},
    {"ep::internode_ll", "dispatch", CollectiveType::kAllToAll},
    {"ep::internode_ll", "combine", CollectiveType::kAllToAll},
    {"hybrid_ep", "dispatch_kernel", CollectiveType::kAllToAll},
    {"hybrid_ep", "combine_kernel", CollectiveType::kAllToAll},
    {"hybrid_ep", "device_sync_kernel", CollectiveType::kBarrier},
    // MORI
    {"", "EpDispatch*", CollectiveType::kAllToAll},
    {"", "EpCombine*", CollectiveType::kAllToAll},
});

// A kernel's name in the form of the tables. Mangled names are demangled.
class WrittenName {
 public:
  explicit WrittenName(std::string_view kernel) : name_(kernel) {
    if (kernel.starts_with("_Z")) decoded_ = MangledFunctionPath(kernel);
    if (decoded_.empty() && kernel.ends_with(".kd")) decoded_ = DemangledName(kernel);
    if (!decoded_.empty()) name_ = decoded_;
  }
  WrittenName(const WrittenName&) = delete;
  WrittenName& operator=(const WrittenName&) = delete;
  std::string_view text() const { return name_; }

 private:
  std::string decoded_;
  std::string_view name_;
};

// Returns "a::b::c" for "void (anonymous namespace)::a::b::c<int>(float*)".
std::string_view WithoutParameters(std::string_view kernel) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t end = kernel.find_first_of("<(");
  while (end != std::string_view::npos && kernel.substr(end).starts_with(kAnonymous)) {
    end = kernel.find_first_of("<(", end + kAnonymous.size());
  }
  return kernel.substr(0, end);
}

bool FitsName(std::string_view function, std::string_view name) {
  if (!name.ends_with('*')) return function == name;
  name.remove_suffix(1);
  return function.starts_with(name);
}

const CommFunction* FindCommFunction(std::string_view kernel) {
  std::string_view rest = WithoutParameters(kernel);
  const size_t end = rest.find_last_of(": ");
  const std::string_view function = end == rest.npos ? rest : rest.substr(end + 1);
  rest = rest.substr(0, end == rest.npos ? 0 : end);
  if (rest.ends_with(':')) rest.remove_suffix(1);
  const std::string_view space = rest.substr(rest.find_last_of(' ') + 1);
  const auto row = std::ranges::find_if(kCommFunctions, [&](const CommFunction& known) {
    return FitsName(function, known.name) && space.ends_with(known.space);
  });
  return row == kCommFunctions.end() ? nullptr : &*row;
}

bool IsNcclKernel(std::string_view name) {
  return std::ranges::any_of(kCommKernels,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

bool IsCommKernel(std::string_view name) {
  const WrittenName written(name);
  return IsNcclKernel(written.text()) || FindCommFunction(written.text()) != nullptr;
}

bool SpeaksOfCommunication(std::string_view kernel) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"allreduce", "all_reduce", "allgather", "all_gather", "alltoall", "all_to_all",
       "reducescatter", "reduce_scatter", "cross_device", "nccl", "rccl", "msccl", "shmem"});
  const WrittenName written(kernel);
  const std::string_view function = WithoutParameters(written.text());
  // The compiler names kernels after all fused operations, including a collective before them.
  if (function.starts_with("triton_")) return false;
  std::string lower(function);
  for (char& c : lower) c = Lower(c);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

CollectiveType CollectiveOfKernel(std::string_view name) {
  const WrittenName written(name);
  const CommFunction* function =
      IsNcclKernel(written.text()) ? nullptr : FindCommFunction(written.text());
  if (function != nullptr) return function->type;
  return CollectiveFromName(written.text()).value_or(CollectiveType::kUnknown);
}

}  // namespace etude
