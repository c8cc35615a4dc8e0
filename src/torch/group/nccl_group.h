#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace etude {

// Returns why NCCL groups are not available, or "": Etude was built for a PyTorch without NCCL, or
// without the headers.
std::string_view WhyNoNccl();

// Returns the name of a CUDA device, such as "NVIDIA H200". Requires WhyNoNccl() to be empty.
// Throws PyTorch's exceptions.
std::string NameOfGpu(const c10::Device& device);

struct NcclMember {
  std::string name;            // of the group
  std::vector<int64_t> ranks;  // of the job, in the group's order
  int place = 0;               // index of this process among the ranks
  std::chrono::milliseconds timeout{};
};

// Makes PyTorch's NCCL process group. Its ranks connect through `store` at their first
// communication. Requires WhyNoNccl() to be empty. Throws PyTorch's exceptions.
c10::intrusive_ptr<c10d::Backend> MakeNcclGroup(c10::intrusive_ptr<c10d::Store> store,
                                                const NcclMember& member);

}  // namespace etude
