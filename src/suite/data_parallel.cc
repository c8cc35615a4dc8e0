#include "src/suite/data_parallel.h"

#include <numeric>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kBucketBytes = 25'000'000;
constexpr std::string_view kGroup = "suite";
constexpr uint8_t kSum = 0;          // c10d's number of the reduction
constexpr int64_t kOwnTimeout = -1;  // the process group's own timeout

// Runs a collective whose last result is its Work, and waits for it.
void RunCollective(const char* name, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
  WaitForWork(stack.back());
}

// Copies tensors of other devices through the CPU, because Gloo supports CPU memory only.
template <typename Collective>
void ThroughHost(const at::Tensor& tensor, const Collective& collective) {
  const at::Tensor host = tensor.cpu();
  collective(host);
  if (!host.is_same(tensor)) tensor.copy_(host);
}

}  // namespace

struct DataParallel::Impl {
  RankGroup* group = nullptr;
  c10::IValue process_group;

  void AllReduce(const at::Tensor& tensor) const {
    ThroughHost(tensor, [this](const at::Tensor& host) {
      RunCollective("c10d::allreduce_", {c10::List<at::Tensor>({host}), process_group,
                                         MakeReduction(kSum), c10::IValue(), false, kOwnTimeout});
    });
  }
  void Broadcast(const at::Tensor& tensor) const {
    constexpr int64_t kRoot = 0;
    constexpr int64_t kRootTensor = 0;
    ThroughHost(tensor, [this](const at::Tensor& host) {
      RunCollective("c10d::broadcast_", {c10::List<at::Tensor>({host}), process_group, kRoot,
                                         kRootTensor, false, kOwnTimeout});
    });
  }
};

DataParallel::DataParallel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataParallel::~DataParallel() = default;

Result<std::unique_ptr<DataParallel>> DataParallel::Connect(RankGroup& group) {
  auto impl = std::make_unique<Impl>();
  impl->group = &group;
  std::vector<int64_t> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  ETUDE_ASSIGN_OR_RETURN(impl->process_group, group.Group(std::string(kGroup), ranks));
  CommLog nothing;  // calls of a step are unknown in advance, but equal on all ranks
  nothing.rank = group.rank();
  nothing.world_size = group.size();
  ETUDE_RETURN_IF_ERROR(group.Connect(nothing));
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(impl)));
}

int64_t DataParallel::rank() const { return impl_->group->rank(); }
int64_t DataParallel::size() const { return impl_->group->size(); }

void DataParallel::AverageGradients(const std::vector<at::Tensor>& parameters, double share) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> bucket;
  int64_t bytes = 0;
  const auto reduce = [&] {
    if (bucket.empty()) return;
    std::vector<at::Tensor> flat;
    for (const at::Tensor& gradient : bucket) flat.push_back(gradient.reshape({-1}));
    at::Tensor all = Cat(flat, 0).mul_(share);
    impl_->AllReduce(all);
    int64_t begin = 0;
    for (const at::Tensor& gradient : bucket) {
      gradient.copy_(all.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
    bucket.clear();
    bytes = 0;
  };
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    bucket.push_back(parameter.grad());
    bytes += static_cast<int64_t>(parameter.grad().nbytes());
    if (bytes >= kBucketBytes) reduce();
  }
  reduce();
}

void DataParallel::Broadcast(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& tensor : tensors) impl_->Broadcast(tensor.detach());
}

Result<std::vector<std::string>> DataParallel::Gather(const std::string& own) {
  ETUDE_RETURN_IF_ERROR(impl_->group->Tell(own));
  std::vector<std::string> all;
  for (int64_t rank = 0; rank < size(); ++rank) {
    ETUDE_ASSIGN_OR_RETURN(all.emplace_back(), impl_->group->ToldBy(rank));
  }
  return all;
}

double DataParallel::Agree(double value) {
  at::Tensor told = Full({1}, 0).to(at::kDouble).fill_(value);
  impl_->Broadcast(told);
  return told.item<double>();
}

}  // namespace etude::suite
