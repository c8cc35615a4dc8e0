#include "src/torch/group/emulated_group.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "src/torch/group/device_stream.h"
#include "src/torch/recorder/monotonic_time.h"

namespace etude {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// End of a group's last communication, and its failure.
struct Line {
  std::mutex mutex;
  Nanos free;
  std::exception_ptr failure;
};

// One communication. Its end is unknown until the present ranks have met.
struct Passage {
  std::shared_ptr<Line> line;
  Nanos duration;
  std::mutex mutex;
  std::condition_variable known;
  std::optional<Nanos> end;

  // Reports a failure in a device's stream, where exceptions are impossible.
  void Fail(std::exception_ptr failure) {
    {
      const std::lock_guard lock(line->mutex);
      line->failure = std::move(failure);
    }
    const std::lock_guard lock(mutex);
    end = MonotonicTime();
    known.notify_all();
  }

  void Begin() {
    Nanos over;
    {
      const std::lock_guard lock(line->mutex);
      over = line->free = std::max(line->free, MonotonicTime()) + duration;
    }
    const std::lock_guard lock(mutex);
    end = over;
    known.notify_all();
  }

  void Wait() {
    std::unique_lock lock(mutex);
    known.wait(lock, [&] { return end.has_value(); });
    const timespec wake{.tv_sec = end->count / 1'000'000'000,
                        .tv_nsec = end->count % 1'000'000'000};
    lock.unlock();
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
  }
};

class EmulatedWork : public c10d::Work {
 public:
  EmulatedWork(int rank, c10d::OpType type, std::shared_ptr<Passage> passage, WorkPtr meeting,
               Tensors outputs, const c10::Device& device)
      : Work(rank, type),
        passage_(std::move(passage)),
        meeting_(std::move(meeting)),
        outputs_(std::move(outputs)),
        device_(device) {}

  bool wait(std::chrono::milliseconds) override {
    if (meeting_) meeting_->wait();  // throws the reason why others do not come
    DoInStream(device_, [passage = passage_] { passage->Wait(); });
    return true;
  }
  bool isCompleted() override {
    const std::lock_guard lock(passage_->mutex);
    return passage_->end && *passage_->end <= MonotonicTime();
  }
  bool isSuccess() const override { return true; }
  Tensors result() override { return outputs_; }

 private:
  std::shared_ptr<Passage> passage_;
  WorkPtr meeting_;
  Tensors outputs_;
  c10::Device device_;
};

Bytes SizeOf(const Tensors& tensors) {
  Bytes sum;
  for (const at::Tensor& tensor : tensors) {
    sum = sum +
          Bytes{static_cast<int64_t>(tensor.numel()) * static_cast<int64_t>(tensor.element_size())};
  }
  return sum;
}

// Writes below autograd, as collectives do, repeating `from` as needed.
void Fill(at::Tensor to, const at::Tensor& from) {
  const at::AutoDispatchBelowAutograd guard;
  if (to.numel() == 0 || from.numel() == 0) return;
  const at::Tensor source = from.reshape({-1});
  const at::Tensor target = to.view({-1});
  for (int64_t at = 0; at < target.numel(); at += source.numel()) {
    const int64_t count = std::min(source.numel(), target.numel() - at);
    target.narrow(0, at, count).copy_(source.narrow(0, 0, count));
  }
}

class EmulatedGroup : public c10d::Backend {
 public:
  EmulatedGroup(int rank, int size, const CommModel& model,
                c10::intrusive_ptr<c10d::Backend> present, const c10::Device& device)
      : Backend(rank, size), model_(model), present_(std::move(present)), device_(device) {}

  const std::string getBackendName() const override { return "emulated"; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions&) override {
    return Make(c10d::OpType::BROADCAST, CollectiveType::kBroadcast, tensors, tensors);
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override {
    return Make(c10d::OpType::ALLREDUCE, CollectiveType::kAllReduce, tensors, tensors);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions&) override {
    return Make(c10d::OpType::ALLREDUCE_COALESCED, CollectiveType::kAllReduce, tensors, tensors);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions&) override {
    return Make(c10d::OpType::REDUCE, CollectiveType::kReduce, tensors, tensors);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions&) override {
    return Gather(c10d::OpType::ALLGATHER, CollectiveType::kAllGather, outputs, inputs);
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions&) override {
    for (Tensors& list : outputs) {
      for (size_t i = 0; i < std::min(list.size(), inputs.size()); ++i) Fill(list[i], inputs[i]);
    }
    return Make(c10d::OpType::ALLGATHER_COALESCED, CollectiveType::kAllGather, inputs, {});
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions&) override {
    return Single(c10d::OpType::_ALLGATHER_BASE, CollectiveType::kAllGather, output, input);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions&) override {
    return Pairs(c10d::OpType::ALLGATHER_COALESCED, CollectiveType::kAllGather, outputs, inputs);
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions&) override {
    return Gather(c10d::OpType::GATHER, CollectiveType::kGather, outputs, inputs);
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions&) override {
    return Scatter(c10d::OpType::SCATTER, CollectiveType::kScatter, outputs, inputs);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions&) override {
    return Scatter(c10d::OpType::REDUCE_SCATTER, CollectiveType::kReduceScatter, outputs, inputs);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions&) override {
    return Single(c10d::OpType::_REDUCE_SCATTER_BASE, CollectiveType::kReduceScatter, output,
                  input);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions&) override {
    return Pairs(c10d::OpType::COALESCED, CollectiveType::kReduceScatter, outputs, inputs);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>&,
                        std::vector<int64_t>&, const c10d::AllToAllOptions&) override {
    return Single(c10d::OpType::ALLTOALL_BASE, CollectiveType::kAllToAll, output, input);
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override {
    return Pairs(c10d::OpType::ALLTOALL, CollectiveType::kAllToAll, outputs, inputs);
  }
  WorkPtr barrier(const c10d::BarrierOptions&) override {
    return Make(c10d::OpType::BARRIER, CollectiveType::kBarrier, {}, {});
  }
  // Sends and receives do not meet the other present ranks: the partner may be missing.
  WorkPtr send(Tensors& tensors, int, int) override {
    return Begin(c10d::OpType::SEND, {.kind = NodeKind::kSend, .bytes = SizeOf(tensors)}, tensors,
                 /*meet=*/false);
  }
  WorkPtr recv(Tensors& tensors, int, int) override {
    return Begin(c10d::OpType::RECV, {.kind = NodeKind::kRecv, .bytes = SizeOf(tensors)}, tensors,
                 /*meet=*/false);
  }
  WorkPtr recvAnysource(Tensors& tensors, int) override {
    return Begin(c10d::OpType::RECVANYSOURCE, {.kind = NodeKind::kRecv, .bytes = SizeOf(tensors)},
                 tensors, /*meet=*/false);
  }

 private:
  WorkPtr Begin(c10d::OpType type, CommSize size, Tensors outputs, bool meet) {
    size.ranks = getSize();
    auto passage = std::make_shared<Passage>();
    passage->line = line_;
    passage->duration = model_.TimeOf(size);
    ThrowFailure();
    WorkPtr meeting;
    if (!meet || !present_) {
      DoInStream(device_, [passage] { passage->Begin(); });
    } else if (device_.is_cpu()) {
      meeting = Meet(passage);
    } else {
      DoInStream(device_, [this, passage] {
        try {
          Meet(passage);
        } catch (const std::exception&) {
          passage->Fail(std::current_exception());
        }
      });
    }
    return c10::make_intrusive<EmulatedWork>(getRank(), type, std::move(passage),
                                             std::move(meeting), std::move(outputs), device_);
  }
  // Begins the passage when all present ranks have come.
  WorkPtr Meet(const std::shared_ptr<Passage>& passage) {
    Tensors token = {at::zeros({1})};
    WorkPtr meeting = present_->allreduce(token);
    meeting->getFuture()->addCallback([passage](c10::ivalue::Future& met) {
      met.hasError() ? passage->Fail(met.exception_ptr()) : passage->Begin();
    });
    return meeting;
  }
  // Throws an earlier failure in a stream.
  void ThrowFailure() {
    const std::lock_guard lock(line_->mutex);
    if (line_->failure) std::rethrow_exception(line_->failure);
  }
  WorkPtr Make(c10d::OpType type, CollectiveType collective, const Tensors& inputs,
               Tensors outputs) {
    return Begin(type, {.type = collective, .bytes = SizeOf(inputs)}, std::move(outputs),
                 /*meet=*/true);
  }
  WorkPtr Single(c10d::OpType type, CollectiveType collective, at::Tensor& output,
                 const at::Tensor& input) {
    Fill(output, input);
    return Make(type, collective, {input}, {output});
  }
  WorkPtr Pairs(c10d::OpType type, CollectiveType collective, Tensors& outputs,
                const Tensors& inputs) {
    for (size_t i = 0; i < std::min(outputs.size(), inputs.size()); ++i) {
      Fill(outputs[i], inputs[i]);
    }
    return Make(type, collective, inputs, outputs);
  }
  WorkPtr Gather(c10d::OpType type, CollectiveType collective, std::vector<Tensors>& outputs,
                 const Tensors& inputs) {
    for (size_t i = 0; i < std::min(outputs.size(), inputs.size()); ++i) {
      for (at::Tensor& output : outputs[i]) Fill(output, inputs[i]);
    }
    return Make(type, collective, inputs, outputs.empty() ? Tensors() : outputs.front());
  }
  WorkPtr Scatter(c10d::OpType type, CollectiveType collective, Tensors& outputs,
                  const std::vector<Tensors>& inputs) {
    for (size_t i = 0; i < std::min(outputs.size(), inputs.size()); ++i) {
      const auto own = static_cast<size_t>(getRank());
      if (own < inputs[i].size()) Fill(outputs[i], inputs[i][own]);
    }
    return Make(type, collective, inputs.empty() ? Tensors() : inputs.front(), outputs);
  }

  CommModel model_;
  c10::intrusive_ptr<c10d::Backend> present_;
  c10::Device device_;
  std::shared_ptr<Line> line_ = std::make_shared<Line>();
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> MakeEmulatedGroup(int rank, int size, const CommModel& model,
                                                    c10::intrusive_ptr<c10d::Backend> present,
                                                    const c10::Device& device) {
  return c10::make_intrusive<EmulatedGroup>(rank, size, model, std::move(present), device);
}

}  // namespace etude
