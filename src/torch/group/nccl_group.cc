#include "src/torch/group/nccl_group.h"

#include <utility>

#ifdef ETUDE_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#else
#include <c10/util/Exception.h>
#endif

namespace etude {

#ifdef ETUDE_NCCL

std::string_view WhyNoNccl() { return {}; }

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

c10::intrusive_ptr<c10d::Backend> MakeNcclGroup(c10::intrusive_ptr<c10d::Store>,
                                                const NcclMember&) {
  TORCH_CHECK(false, WhyNoNccl());
}

#endif

}  // namespace etude
