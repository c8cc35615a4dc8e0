#include "src/torch/group/nccl_group.h"

#include <utility>

#ifdef ETUDE_NCCL
#include <ATen/cuda/CUDAContextLight.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#else
#include <c10/util/Exception.h>
#endif

namespace etude {

#ifdef ETUDE_NCCL

std::string_view WhyNoNccl() { return {}; }

std::string NameOfGpu(const c10::Device& device) {
  return static_cast<const char*>(at::cuda::getDeviceProperties(device.index())->name);
}

c10::intrusive_ptr<c10d::Backend> MakeNcclGroup(c10::intrusive_ptr<c10d::Store> store,
                                                const NcclMember& member) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = member.timeout;
  options->global_ranks_in_group.assign(member.ranks.begin(), member.ranks.end());
  options->group_name = member.name;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(
      std::move(store), member.place, static_cast<int>(member.ranks.size()), std::move(options));
}

#else

std::string_view WhyNoNccl() { return ETUDE_WHY_NO_NCCL; }

std::string NameOfGpu(const c10::Device&) { TORCH_CHECK(false, WhyNoNccl()); }

c10::intrusive_ptr<c10d::Backend> MakeNcclGroup(c10::intrusive_ptr<c10d::Store>,
                                                const NcclMember&) {
  TORCH_CHECK(false, WhyNoNccl());
}

#endif

}  // namespace etude
