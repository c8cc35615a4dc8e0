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

// Why there are no NCCL groups, or "": Etude was built for a PyTorch without NCCL, or where headers
// were missing.
std::string_view WhyNoNccl();

struct NcclMember {
  std::string name;            // of the group
  std::vector<int64_t> ranks;  // of the job, in the group's order
  int place = 0;               // of this process among them
  std::chrono::milliseconds timeout{};
};

// PyTorch's process group with NCCL, whose ranks meet at `store` when they first communicate. To be
// called only where WhyNoNccl gives no reason. Throws what PyTorch throws.
c10::intrusive_ptr<c10d::Backend> MakeNcclGroup(c10::intrusive_ptr<c10d::Store> store,
                                                const NcclMember& member);

}  // namespace etude
