#include "src/torch/group/collective_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <torch/headeronly/version.h>

#include "src/analysis/time/time_summary.h"
#include "src/base/machine/process_usage.h"
#include "src/torch/device_clock.h"
#include "src/torch/error_text.h"
#include "src/torch/group/nccl_group.h"
#include "src/torch/group/rank_group.h"

namespace etude {
namespace {

using ListOfTensors = c10::List<at::Tensor>;

constexpr int64_t kElementBytes = 4;
constexpr int64_t kOwnTimeout = -1;  // the process group's own timeout
constexpr int64_t kTag = 0;
constexpr uint8_t kSum = 0;  // c10d's number of the reduction
constexpr int64_t kRoot = 0;
constexpr int64_t kRootTensor = 0;

// Programs compute between communications, and the threads of c10d then wait for a core as long as
// the system lets a thread run, which is a few milliseconds.
constexpr int64_t kComputeTime = 4'000'000;  // ns
constexpr int64_t kMatrixSize = 256;         // rows and columns
// A product of such matrices takes milliseconds on a GPU, more than the calls of a communication.
constexpr int64_t kDeviceMatrixSize = 4096;
constexpr int kOrigins = 8;
constexpr int64_t kWarmUp = 2;
constexpr double kSecondsOfRepeats = 0.04;
constexpr int64_t kLeastRepeats = 5;

constexpr int64_t kBlockTime = 2'000'000;  // ns, of repeated computations
constexpr double kSecondsOfBlocks = 0.2;
constexpr int64_t kLeastBlocks = 3;
constexpr int64_t kMostCalls = 10'000;  // in a block

// Returns the time of a clock that all processes of the machine share.
int64_t Now() {
  static_assert(std::chrono::steady_clock::is_steady);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

at::Tensor Wholes(size_t count) { return at::zeros({static_cast<int64_t>(count)}, at::kLong); }

// An operator of c10d with its arguments. Its last result is its Work.
class Call {
 public:
  Call(const char* name, torch::jit::Stack arguments)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(name, "")),
        arguments_(std::move(arguments)) {}

  void Run() const {
    torch::jit::Stack stack = arguments_;
    op_.callBoxed(stack);
    WaitForWork(stack.back());
  }

 private:
  c10::OperatorHandle op_;
  torch::jit::Stack arguments_;
};

c10::List<ListOfTensors> ListOf(std::vector<ListOfTensors> lists) {
  c10::List<ListOfTensors> all;
  for (ListOfTensors& list : lists) all.push_back(std::move(list));
  return all;
}

}  // namespace

struct CollectiveTimer::Impl {
  c10::IValue group;
  int64_t rank = 0;
  int64_t ranks = 2;
  c10::Device device{c10::DeviceType::CPU};

  bool is_root() const { return rank == kRoot; }

  at::Tensor Zeros(at::IntArrayRef sizes) const {
    return at::zeros(sizes, at::TensorOptions(at::kFloat).device(device));
  }
  at::Tensor Floats(int64_t bytes) const { return Zeros({bytes / kElementBytes}); }

  // Returns `ranks` tensors of `bytes` on the root, and none on other ranks.
  c10::List<ListOfTensors> OnRoot(int64_t bytes) const {
    if (!is_root()) return ListOf({});
    ListOfTensors parts;
    for (int64_t i = 0; i < ranks; ++i) parts.push_back(Floats(bytes));
    return ListOf({parts});
  }

  // Returns a barrier of the group on the device of a tensor.
  Call Barrier(const at::Tensor& tensor) const {
    return {"c10d::barrier", {tensor, group, std::vector<int64_t>{}, false, kOwnTimeout}};
  }

  Call Gather(const at::Tensor& own, const at::Tensor& all) const {
    return {"c10d::_allgather_base_", {all, own, group, false, kOwnTimeout}};
  }

  // Returns this rank's side of a message.
  Call Message(int64_t bytes) const {
    const ListOfTensors tensors({Floats(bytes)});
    if (is_root()) return {"c10d::send", {tensors, group, int64_t{1}, kTag}};
    return {"c10d::recv_", {tensors, group, kRoot, kTag}};
  }

  Call CallOf(CollectiveType type, int64_t bytes) const {
    const auto own = [&] { return ListOfTensors({Floats(bytes)}); };
    switch (type) {
      case CollectiveType::kAllReduce:
        return {"c10d::allreduce_",
                {own(), group, MakeReduction(kSum), c10::IValue(), false, kOwnTimeout}};
      case CollectiveType::kReduce:
        return {"c10d::reduce_",
                {own(), group, MakeReduction(kSum), kRoot, kRootTensor, false, kOwnTimeout}};
      case CollectiveType::kAllGather: return Gather(Floats(bytes), Floats(bytes * ranks));
      case CollectiveType::kGather:
        return {"c10d::gather_", {OnRoot(bytes), own(), group, kRoot, false, kOwnTimeout}};
      case CollectiveType::kScatter:
        return {"c10d::scatter_",
                {ListOfTensors({Floats(bytes / ranks)}), OnRoot(bytes / ranks), group, kRoot, false,
                 kOwnTimeout}};
      case CollectiveType::kBroadcast:
        return {"c10d::broadcast_", {own(), group, kRoot, kRootTensor, false, kOwnTimeout}};
      case CollectiveType::kAllToAll:
        return {"c10d::alltoall_base_",
                {Floats(bytes), Floats(bytes), group, std::vector<int64_t>{},
                 std::vector<int64_t>{}, false, kOwnTimeout}};
      case CollectiveType::kReduceScatter:
        return {
            "c10d::_reduce_scatter_base_",
            {Floats(bytes / ranks), Floats(bytes), group, MakeReduction(kSum), false, kOwnTimeout}};
      case CollectiveType::kBarrier:
      case CollectiveType::kReduceScatterBlock:
      case CollectiveType::kUnknown: break;
    }
    return Barrier(Zeros({1}));
  }

  // Returns the values of all ranks, one rank after the other.
  std::vector<int64_t> FromAll(const std::vector<int64_t>& own) const {
    const at::Tensor mine = Wholes(own.size());
    std::ranges::copy(own, mine.mutable_data_ptr<int64_t>());
    const at::Tensor all = Wholes(own.size() * static_cast<size_t>(ranks));
    Gather(mine, all).Run();
    const auto* values = all.const_data_ptr<int64_t>();
    return {values, values + all.numel()};
  }

  // Time from begin to end of a communication on this rank, by the machine's clock.
  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
  };

  Span OnHost(const Call& call) const {
    const int64_t begin = Now();
    call.Run();
    return {begin, Now()};
  }

  // A mark of the idle device, and the time on the machine's clock when the device came to it.
  struct Origin {
    c10::Event mark;
    int64_t time = 0;
  };

  // Makes several marks and returns that with the shortest wait, half of which is its error.
  Origin MakeOrigin() const {
    Origin best{.mark = MarkStream(device)};
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < kOrigins; ++i) {
      const int64_t begin = Now();
      c10::Event mark = MarkStream(device);
      mark.synchronize();
      const int64_t wait = Now() - begin;
      if (wait >= shortest) continue;
      shortest = wait;
      best = {.mark = std::move(mark), .time = begin + wait / 2};
    }
    return best;
  }

  // The device multiplies matrices during the call, so that it begins the communication without a
  // wait for the host.
  Span OnDevice(const Call& call, const at::Tensor& matrix) const {
    const Origin origin = MakeOrigin();
    const at::Tensor product = at::mm(matrix, matrix);
    const c10::Event begin = MarkStream(device);
    call.Run();
    const c10::Event end = MarkStream(device);
    end.synchronize();
    const auto time = [&](const c10::Event& mark) {
      return origin.time + std::llround(origin.mark.elapsedTime(mark) * 1e6);  // from ms
    };
    return {time(begin), time(end)};
  }

  // Communications and the CPU time of all ranks in them, with all their threads.
  struct Timed {
    std::vector<Nanos> times;
    Nanos cpu;
  };

  // Times `count` communications, before each of which all ranks compute. Equal on all ranks.
  Timed Time(const Call& call, int64_t count) const {
    const Call barrier = Barrier(at::zeros({1}));
    const int64_t size = device.is_cpu() ? kMatrixSize : kDeviceMatrixSize;
    const at::Tensor matrix = Zeros({size, size});
    std::vector<int64_t> own;  // begin, end and CPU time of each
    for (int64_t i = 0; i < count; ++i) {
      barrier.Run();
      if (device.is_cpu()) {
        for (const int64_t end = Now() + kComputeTime; Now() < end;) at::mm(matrix, matrix);
      }
      const Nanos cpu = CpuTime();
      const Span span = device.is_cpu() ? OnHost(call) : OnDevice(call, matrix);
      // A device communicates without the cores.
      const Nanos used = device.is_cpu() ? CpuTime() - cpu : Nanos{};
      own.insert(own.end(), {span.begin, span.end, used.count});
    }
    const std::vector<int64_t> all = FromAll(own);
    Timed timed;
    for (size_t i = 0; i < own.size(); i += 3) {
      int64_t begin = own[i];
      int64_t end = own[i + 1];
      for (size_t at = i; at < all.size(); at += own.size()) {
        begin = std::max(begin, all[at]);
        end = std::max(end, all[at + 1]);
        timed.cpu = timed.cpu + Nanos{all[at + 2]};
      }
      timed.times.push_back(Nanos{end - begin});
    }
    return timed;
  }

  // Returns the time of `calls` computations one after the other.
  Nanos TimeOfCalls(const std::function<void()>& compute, int64_t calls) const {
    if (device.is_cpu()) {
      const int64_t begin = Now();
      for (int64_t i = 0; i < calls; ++i) compute();
      return Nanos{Now() - begin};
    }
    const c10::Event begin = MarkStream(device);
    for (int64_t i = 0; i < calls; ++i) compute();
    const c10::Event end = MarkStream(device);
    end.synchronize();
    return Nanos{std::llround(begin.elapsedTime(end) * 1e6)};  // from ms
  }

  std::function<void()> ComputationOf(ComputationType type, DType dtype, int64_t bytes) const {
    const auto scalar = static_cast<at::ScalarType>(ScalarTypeNumber(dtype));
    const int64_t elements = bytes / ElementBytes(dtype).value_or(1);
    const int64_t side = std::llround(std::sqrt(static_cast<double>(elements)));
    const at::TensorOptions options = at::TensorOptions(scalar).device(device);
    const auto tensor = [&] {
      return type == ComputationType::kProduct ? at::ones({side, side}, options)
                                               : at::ones({elements}, options);
    };
    const at::Tensor one = tensor();
    const at::Tensor other = tensor();
    at::Tensor to = tensor();
    switch (type) {
      case ComputationType::kCopy: return [=]() mutable { to.copy_(one); };
      case ComputationType::kAddition: return [=]() mutable { at::add_out(to, one, other); };
      case ComputationType::kProduct: break;
    }
    return [=]() mutable { at::mm_out(to, one, other); };
  }

  MeasuredComputation::Point Measure(ComputationType type, DType dtype, int64_t bytes,
                                     int64_t most_repeats) const {
    const std::function<void()> compute = ComputationOf(type, dtype, bytes);
    const Call barrier = Barrier(at::zeros({1}));
    TimeOfCalls(compute, 1);
    // All ranks repeat it equally often, so that they compute at the same time.
    int64_t once = 1;
    for (const int64_t time : FromAll({TimeOfCalls(compute, kWarmUp).count / kWarmUp})) {
      once = std::max(once, time);
    }
    const int64_t calls = std::clamp<int64_t>(kBlockTime / once, 1, kMostCalls);
    const double blocks = std::clamp(kSecondsOfBlocks * 1e9 / static_cast<double>(once * calls),
                                     static_cast<double>(std::min(kLeastBlocks, most_repeats)),
                                     static_cast<double>(most_repeats));
    std::vector<int64_t> own;
    for (int64_t i = 0; i < static_cast<int64_t>(blocks); ++i) {
      barrier.Run();
      own.push_back(TimeOfCalls(compute, calls).count);
    }
    const std::vector<int64_t> all = FromAll(own);
    double sum = 0;
    double spread = 0;
    for (int64_t i = 0; i < ranks; ++i) {
      std::vector<Nanos> times;
      for (size_t block = 0; block < own.size(); ++block) {
        times.push_back(Nanos{all[static_cast<size_t>(i) * own.size() + block]});
      }
      spread += ErrorOfMean(times);
      sum += static_cast<double>(Median(times).value_or(Nanos{}).count);
    }
    const auto count = static_cast<double>(ranks);
    return {.bytes = bytes,
            .time_ns = std::llround(sum / count / static_cast<double>(calls)),
            .spread = spread / count};
  }

  MeasuredSeries::Point Measure(const MeasuredKind& kind, int64_t bytes,
                                int64_t most_repeats) const {
    const Call call = kind == kMessageKind ? Message(bytes) : CallOf(*kind, bytes);
    const double once = std::max(1.0, static_cast<double>(Mean(Time(call, kWarmUp).times).count));
    const double repeats = std::clamp(kSecondsOfRepeats * 1e9 / once,
                                      static_cast<double>(std::min(kLeastRepeats, most_repeats)),
                                      static_cast<double>(most_repeats));
    const auto [times, cpu] = Time(call, static_cast<int64_t>(repeats));
    // Programs wait for the sum of their communications, and delays by the system's scheduler,
    // which a median hides, are a part of it.
    const Nanos mean = Mean(times);
    const double of_rank = static_cast<double>(cpu.count) / static_cast<double>(ranks);
    const double all = static_cast<double>(mean.count) * static_cast<double>(times.size());
    return {.bytes = bytes,
            .time_ns = mean.count,
            .spread = ErrorOfMean(times),
            .cores = of_rank / std::max(1.0, all)};
  }
};

std::string_view CollectiveTimer::TorchVersion() { return TORCH_VERSION; }

CollectiveTimer::CollectiveTimer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CollectiveTimer::~CollectiveTimer() = default;

Result<std::string> CollectiveTimer::NameOfDevice(const std::string& device) {
  try {
    return NameOfGpu(c10::Device(device));
  } catch (const std::exception& error) {
    return Unavailable(fmt::format("device '{}': {}", device, FirstLine(error.what())));
  }
}

Result<std::unique_ptr<CollectiveTimer>> CollectiveTimer::Make(RankGroup& group, int64_t ranks,
                                                               const std::string& device) {
  at::set_num_threads(1);
  std::vector<int64_t> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  auto impl = std::make_unique<Impl>();
  ETUDE_ASSIGN_OR_RETURN(impl->group, group.Group(fmt::format("calibrate.{}", ranks), members));
  impl->rank = group.rank();
  impl->ranks = ranks;
  impl->device = c10::Device(device);
  return std::unique_ptr<CollectiveTimer>(new CollectiveTimer(std::move(impl)));
}

Result<MeasuredSeries::Point> CollectiveTimer::Measure(const MeasuredKind& kind, int64_t bytes,
                                                       int64_t most_repeats) {
  try {
    return impl_->Measure(kind, bytes, most_repeats);
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("{} of {} ranks and {} bytes: {}", NameOfKind(kind), impl_->ranks,
                                 bytes, FirstLine(error.what())));
  }
}

Result<MeasuredComputation::Point> CollectiveTimer::Measure(ComputationType type, DType dtype,
                                                            int64_t bytes, int64_t most_repeats) {
  try {
    return impl_->Measure(type, dtype, bytes, most_repeats);
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("{} of {} and {} bytes: {}", NameOfComputation(type), Name(dtype),
                                 bytes, FirstLine(error.what())));
  }
}

}  // namespace etude
