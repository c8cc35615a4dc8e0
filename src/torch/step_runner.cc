#include "src/torch/step_runner.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "src/torch/error_text.h"
#include "src/torch/group/rank_group.h"
#include "src/torch/memory/gradient_to_come.h"
#include "src/torch/recorder/monotonic_time.h"
#include "src/torch/replay_device.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Sleeps until `end`; returns the time slept.
Nanos SleepUntil(Nanos end) {
  const Nanos begin = MonotonicTime();
  if (end <= begin) return {};
  const timespec wake{.tv_sec = end.count / 1'000'000'000, .tv_nsec = end.count % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
  return MonotonicTime() - begin;
}

// Keeps this thread busy until `end`, like a program running Python, and returns the time. If the
// system takes the processor away, the end moves, because that time was not the program's.
Nanos SpinUntil(Nanos end) {
  // Larger steps between two clock readings mean that another thread ran.
  constexpr Nanos kAway{50'000};
  Nanos begin = MonotonicTime();
  Nanos now = begin;
  while (now < end) {
    const Nanos next = MonotonicTime();
    if (const Nanos away = next - now; away > kAway) {
      begin = begin + away;
      end = end + away;
    }
    now = next;
  }
  return now - begin;
}

// Keeps this thread busy until `end`, including interruptions, because the stretched time was
// measured that way.
void HoldUntil(Nanos end) {
  while (MonotonicTime() < end) {
  }
}

// Calls `fn(const at::Tensor&)` for each tensor on the stack, including those in lists, in the
// order of DataFlow::outputs.
template <typename Fn>
void ForEachResult(const torch::jit::Stack& stack, Fn fn) {
  const auto visit = [&](const auto& self, const c10::IValue& value) -> void {
    if (value.isTensor()) {
      fn(value.toTensor());
    } else if (value.isList()) {
      const auto list = value.toListRef();
      for (const c10::IValue& item : list) self(self, item);
    }
  };
  for (const c10::IValue& value : stack) visit(visit, value);
}

// Counts operators on this thread during its lifetime.
class OperatorWatch {
 public:
  OperatorWatch() {
    active = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&OperatorWatch::Enter)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~OperatorWatch() {
    at::removeCallback(handle_);
    active = nullptr;
  }
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  void Begin(Observation* observation) { observation_ = observation; }
  void End() { observation_ = nullptr; }

 private:
  static std::unique_ptr<at::ObserverContext> Enter(const at::RecordFunction& function) {
    const OperatorWatch* watch = active;
    if (watch == nullptr || watch->observation_ == nullptr) return nullptr;
    if (const auto name = function.operator_name()) {
      ++watch->observation_
            ->operators[name->overload_name.empty() ? name->name
                                                    : name->name + "." + name->overload_name];
    }
    return nullptr;
  }

  // Callbacks are plain functions, so they find the thread's watch here.
  static thread_local OperatorWatch* active;

  at::CallbackHandle handle_ = 0;
  Observation* observation_ = nullptr;
};

thread_local OperatorWatch* OperatorWatch::active = nullptr;

// Content of what an operator on the CPU changes: the tensors that it writes to, and the state of
// the random generator.
class KeptContent {
 public:
  KeptContent(const c10::FunctionSchema& schema, const torch::jit::Stack& stack)
      : generator_(at::globalContext().defaultGenerator(at::kCPU)), state_(generator_.get_state()) {
    const auto keep = [&](const auto& self, const c10::IValue& value) -> void {
      if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
        const c10::Storage& storage = value.toTensor().storage();
        tensors_.emplace_back(
            storage, at::Tensor(at::empty({static_cast<int64_t>(storage.nbytes())}, at::kByte)));
        CopyBytes(storage, tensors_.back().second.storage());
      } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) self(self, item);
      }
    };
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) keep(keep, stack[i]);
    }
  }
  void Restore() const {
    for (const auto& [storage, content] : tensors_) CopyBytes(content.storage(), storage);
    at::Generator(generator_).set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
  std::vector<std::pair<c10::Storage, at::Tensor>> tensors_;
};

// Returns `tensor` with the recorded sizes: its first elements, repeated as needed.
at::Tensor Coerced(const at::Tensor& tensor, at::IntArrayRef sizes) {
  int64_t wanted = 1;
  for (const int64_t size : sizes) wanted *= size;
  const at::Tensor flat = tensor.reshape({-1});
  if (flat.numel() >= wanted) return flat.narrow(0, 0, wanted).reshape(sizes);
  if (flat.numel() == 0) return at::zeros(sizes, tensor.options());
  const int64_t times = (wanted + flat.numel() - 1) / flat.numel();
  return flat.repeat({times}).narrow(0, 0, wanted).reshape(sizes);
}

}  // namespace

void StepRunner::Load(ReplayPlan plan, std::vector<const BoundOperator*> operators,
                      std::span<const CommunicationWait> waits, RankGroup* group) {
  plan_ = std::move(plan);
  operators_ = std::move(operators);
  slots_.assign(plan_.slots.size(), at::Tensor());
  works_.assign(plan_.ops.size(), {});
  waits_.assign(plan_.ops.size() + 1, {});
  for (const CommunicationWait& wait : waits) waits_[wait.before].push_back(wait.communication);
  group_ = group;
  std::vector<std::optional<std::string>> batched(operators_.size());
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (!operators_[i]->communicates()) continue;
    const BoundOperator::Channel& channel = operators_[i]->channel();
    if (channel.kind != NodeKind::kCollective) batched[i] = channel.group;
  }
  batches_ = FindCommBatches(batched, waits_);
}

bool StepRunner::IsAwaitedAtOnce(uint32_t communication) const {
  return std::ranges::count(waits_[communication + 1], communication) != 0;
}

// Waits for the collective, once.
void StepRunner::Await(uint32_t collective) {
  const c10::IValue work = std::exchange(works_[collective], {});
  if (work.isNone()) return;
  const size_t at = at_.exchange(collective, std::memory_order_relaxed);
  const Nanos begin = MonotonicTime();
  if (IsAwaitedByDevice() && operators_[collective]->is_barrier()) {
    HoldForDevice([&] { return IsOver(work); });
  }
  WaitForWork(work);
  if (IsAwaitedByDevice()) NoteWait(collective);
  if (pace_ != nullptr) StretchCommunication(collective, begin);
  waited_until_ = MonotonicTime();
  at_.store(at, std::memory_order_relaxed);
}

bool StepRunner::IsAwaitedByDevice() const {
  return !devices_.target_is_cpu() && group_ != nullptr && !group_->is_alone();
}

void StepRunner::NoteWait(uint32_t collective) {
  const c10::Device device(devices_.target());
  c10::Event passed(device.type());
  passed.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  device_waits_.push_back({collective, std::move(passed)});
}

const CommBatch* StepRunner::TakenBatch(size_t index) const {
  if (!operators_[index]->communicates()) return nullptr;
  const CommBatch* batch = BatchOf(batches_, index);
  if (batch == nullptr) return nullptr;
  return group_->UsesNccl(operators_[index]->channel().group) ? batch : nullptr;
}

// Ends a batch; a wait for one of its members waits for all.
void StepRunner::EndBatch(const CommBatch& batch) {
  const c10::IValue work = group_->EndBatch(operators_[batch.last]->channel().group);
  for (uint32_t i = batch.first; i <= batch.last; ++i) works_[i] = work;
}

void StepRunner::HoldForDevice(const std::function<bool()>& over) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  using Clock = std::chrono::steady_clock;
  const size_t at = at_.load(std::memory_order_relaxed);
  const size_t reached = reached_.load(std::memory_order_relaxed);
  size_t passed = 0;
  auto since = Clock::now();
  auto next_look = since + kLook;
  while (true) {
    const size_t before = passed;
    while (passed < device_waits_.size() && device_waits_[passed].passed.query()) ++passed;
    if (passed == device_waits_.size() && over()) break;
    const auto now = Clock::now();
    if (passed > before) since = now;
    if (now < next_look) continue;
    next_look = now + kLook;
    if (passed < device_waits_.size()) {
      // The device has reached this operator, or one before it: reported to other ranks.
      at_.store(device_waits_[passed].collective, std::memory_order_relaxed);
      reached_.store(device_waits_[passed].collective + 1, std::memory_order_relaxed);
    } else {
      at_.store(at, std::memory_order_relaxed);
      reached_.store(reached, std::memory_order_relaxed);
    }
    if (now - since > group_->timeout()) {
      throw std::runtime_error(
          fmt::format("the device has made no progress for {} ms", group_->timeout().count()));
    }
  }
  at_.store(at, std::memory_order_relaxed);
  reached_.store(reached, std::memory_order_relaxed);
  device_waits_.clear();
}

Status StepRunner::Finish() {
  try {
    if (IsAwaitedByDevice()) HoldForDevice([] { return true; });
    Synchronize(devices_.target());
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(Failure(error.what()));
  }
  reached_.store(0, std::memory_order_relaxed);
  steps_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// Passes the additional time of a finished communication on the emulated machine: from `begin` of
// the wait if it took time, otherwise from the communication's begin.
void StepRunner::StretchCommunication(uint32_t collective, Nanos begin) {
  constexpr Nanos kAtOnce{20'000};
  const Nanos expected = pace_->expected[collective];
  if (expected == Nanos{}) return;
  const double factor = pace_->operators[collective];
  const Nanos now = MonotonicTime();
  SleepUntil(now - begin > kAtOnce ? now + Scaled(expected, factor - 1)
                                   : begun_[collective] + Scaled(expected, factor));
}

void StepRunner::Clear() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (plan_.slots[i].source != SlotSource::kOutside) slots_[i].reset();
  }
}

void StepRunner::Release(const std::vector<SlotId>& slots) {
  for (const SlotId slot : slots) slots_[slot.index()].reset();
}

void StepRunner::Derive(const PlannedOp& op) {
  for (const SlotId id : op.derive) {
    const Slot& slot = plan_.slots[id.index()];
    const at::Tensor& base = slots_[slot.base.index()];
    const TensorUse& use = trace_.tensor(slot.tensor);
    auto view = base.defined() && base.has_storage() ? MakeView(trace_, use, base.storage())
                                                     : Result<at::Tensor>(base);
    if (!view) throw std::runtime_error("argument: " + view.error().message);
    slots_[id.index()] = *std::move(view);
  }
}

template <typename Before, typename After>
void StepRunner::RunOne(size_t index, bool coerce, Before before_call, After after_call) {
  const PlannedOp& op = plan_.ops[index];
  const BoundOperator& bound = *operators_[index];
  at_.store(index, std::memory_order_relaxed);
  for (const uint32_t collective : waits_[index]) Await(collective);
  Release(op.release_before);
  Derive(op);
  for (const Content& content : op.given) GiveContent(content);
  bound.Push(op.inputs, slots_, stack_);
  const GradientToCome gradient(op.inputs, op.differentiated, slots_);
  before_call();
  reached_.store(index + 1, std::memory_order_relaxed);
  const CommBatch* batch = TakenBatch(index);
  if (batch != nullptr && batch->first == index) group_->BeginBatch(bound.channel().group);
  bound.Call(stack_);
  if (bound.communicates() && !stack_.empty() && stack_.back().isCustomClass()) {
    works_[index] = stack_.back();
  }
  if (batch != nullptr && batch->last == index) EndBatch(*batch);
  after_call();
  if (!op.differentiated.empty()) ForEachResult(stack_, GradientToCome::TakeOff);
  const auto own = static_cast<uint32_t>(index);
  if (bound.communicates() && IsAwaitedAtOnce(own)) Await(own);
  Store(index, coerce);
  Release(op.release);
}

void StepRunner::RunOne(size_t index, bool coerce) {
  RunOne(
      index, coerce, [] {}, [] {});
}

void StepRunner::Store(size_t index, bool coerce) {
  const PlannedOp& op = plan_.ops[index];
  size_t i = 0;
  ForEachResult(stack_, [&](const at::Tensor& result) {
    if (i < op.results.size() && op.results[i]) {
      const TensorUse& use = trace_.tensor(plan_.slots[op.results[i].index()].tensor);
      at::Tensor& slot = slots_[op.results[i].index()];
      const auto sizes = trace_.ints(use.shape);
      slot = result;
      if (coerce && result.defined() && !std::ranges::equal(result.sizes(), sizes)) {
        slot = Coerced(result, at::IntArrayRef(sizes.data(), sizes.size()));
      }
      if (coerce && result.defined()) {
        slot = slot.to(ScalarTypeOf(trace_, use).value_or(slot.scalar_type()));
      }
    }
    ++i;
  });
  stack_.clear();
  for (const Content& content : op.content) GiveContent(content);
}

// Bypasses the dispatcher, as in the recorded program.
void StepRunner::GiveContent(const Content& content) {
  const at::Tensor& to = slots_[content.to.index()];
  const at::Tensor& from = slots_[content.from.index()];
  if (!to.defined() || !to.has_storage() || !from.defined()) return;
  CopyBytes(from.storage(), to.storage());
}

void StepRunner::CompareResults(size_t index, Observation& seen) const {
  const auto uses = flow_.outputs(plan_.ops[index].node);
  size_t i = 0;
  ForEachResult(stack_, [&](const at::Tensor& result) {
    if (i < uses.size() && uses[i].version && result.defined()) {
      const TensorUse& use = trace_.tensor(uses[i].tensor);
      seen.wrong_shape |= !std::ranges::equal(result.sizes(), trace_.ints(use.shape));
      seen.wrong_type |=
          ScalarTypeOf(trace_, use).value_or(result.scalar_type()) != result.scalar_type();
    }
    ++i;
  });
}

std::string StepRunner::WrongArgument(size_t index) const {
  const PlannedOp& op = plan_.ops[index];
  const auto uses = flow_.inputs(op.node);
  for (size_t i = 0; i < uses.size() && i < op.inputs.size(); ++i) {
    if (!op.inputs[i]) continue;
    const at::Tensor& tensor = slots_[op.inputs[i].index()];
    const auto type = ScalarTypeOf(trace_, trace_.tensor(uses[i].tensor));
    if (!tensor.defined() || !type || tensor.scalar_type() == *type) continue;
    return "tensor " + std::to_string(i) + " among the arguments has elements of type " +
           c10::toString(tensor.scalar_type()) + ", expected " + c10::toString(*type);
  }
  return {};
}

void StepRunner::StandIn(size_t index) {
  const PlannedOp& op = plan_.ops[index];
  for (const SlotId slot : op.results) {
    if (!slot) continue;
    auto tensor = MakeStandIn(trace_, trace_.tensor(plan_.slots[slot.index()].tensor), devices_);
    if (tensor) slots_[slot.index()] = *std::move(tensor);
  }
}

RankStatus StepRunner::Progress() const {
  const size_t at = at_.load(std::memory_order_relaxed);
  const size_t reached = reached_.load(std::memory_order_relaxed);
  const int64_t steps = steps_.load(std::memory_order_relaxed);
  RankStatus status;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (!operators_[i]->communicates()) continue;
    status.begun[operators_[i]->channel().own] += steps + (i < reached ? 1 : 0);
  }
  if (at >= operators_.size() || (reached == 0 && at > 0)) {
    status.doing = fmt::format("after step {}", steps);
    return status;
  }
  const BoundOperator& bound = *operators_[at];
  status.doing =
      fmt::format("{} {} (node {}) of step {}", at < reached ? "in" : "before",
                  bound.schema().name(), trace_.source_id(plan_.ops[at].node), steps + 1);
  if (!bound.communicates() || at >= reached) return status;
  const BoundOperator::Channel& channel = bound.channel();
  if (!channel.group.empty()) status.doing += fmt::format(", process group '{}'", channel.group);
  status.partners = channel.partners;
  status.partners_channel = channel.partners_channel;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (!operators_[i]->communicates() || operators_[i]->channel().own != channel.own) continue;
    status.call += steps + (i <= at ? 1 : 0);
  }
  return status;
}

Error StepRunner::Failure(std::string_view what) const {
  const NodeId node = plan_.ops[at_].node;
  return {ErrorCode::kInternal, "node " + std::to_string(trace_.source_id(node)) + ", " +
                                    std::string(OperatorNameOf(trace_, node)) + ": " +
                                    FirstLine(what)};
}

template <typename Fn>
Status StepRunner::RunEach(Fn run) {
  try {
    for (size_t i = 0; i < plan_.ops.size(); ++i) ETUDE_RETURN_IF_ERROR(run(i));
    for (const uint32_t collective : waits_.back()) Await(collective);
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(Failure(error.what()));
  }
  Release(plan_.release_at_end);
  return {};
}

Status StepRunner::Run(const std::vector<bool>& coerce) {
  return RunEach([&](size_t i) -> Status {
    RunOne(i, coerce[i]);
    return {};
  });
}

Status StepRunner::RunWithGaps(const std::vector<bool>& coerce, const HostGaps& gaps,
                               PassedGaps& passed) {
  Nanos left = MonotonicTime();  // return of the last operator
  const auto pass = [&](size_t i, Nanos gap) {
    const Nanos end = std::max(left, waited_until_) + gap;
    if (i < gaps.idle.size() && gaps.idle[i] > Nanos{}) {
      passed.idle = passed.idle + SleepUntil(end - gap + gaps.idle[i]);
    }
    passed.busy = passed.busy + SpinUntil(end);
  };
  ETUDE_RETURN_IF_ERROR(RunEach([&](size_t i) -> Status {
    RunOne(
        i, coerce[i], [&] { pass(i, gaps.before[i]); }, [&] { left = MonotonicTime(); });
    return {};
  }));
  pass(gaps.before.size(), gaps.after);
  return {};
}

Status StepRunner::RunStretched(const std::vector<bool>& coerce, const StepPace& pace,
                                const HostGaps* gaps, PassedGaps& passed) {
  pace_ = &pace;
  begun_.assign(plan_.ops.size(), Nanos{});
  Nanos left = MonotonicTime();  // end of the last operator, stretched
  Nanos begin;
  // Passes the recorded gap, or the time since the last operator, stretched.
  const auto pass = [&](const Nanos* gap, const Nanos* idle) {
    const Nanos since = std::max(left, waited_until_);
    if (idle) passed.idle = passed.idle + SleepUntil(since + Scaled(*idle, pace.host));
    if (gap) {
      passed.busy = passed.busy + SpinUntil(since + Scaled(*gap, pace.host));
    } else {
      HoldUntil(since + Scaled(MonotonicTime() - since, pace.host));
    }
    begin = MonotonicTime();
  };
  const Status done = RunEach([&](size_t i) -> Status {
    RunOne(
        i, coerce[i],
        [&] {
          const bool waits = gaps && i < gaps->idle.size() && gaps->idle[i] > Nanos{};
          pass(gaps ? &gaps->before[i] : nullptr, waits ? &gaps->idle[i] : nullptr);
          begun_[i] = begin;
        },
        [&] {
          const Nanos now = MonotonicTime();
          // Communications with other ranks are stretched when they are over.
          const double factor = pace.expected[i] == Nanos{} ? pace.operators[i] : 1;
          HoldUntil(now + Scaled(now - begin, factor - 1));
          left = MonotonicTime();
        });
    return {};
  });
  if (done) pass(gaps ? &gaps->after : nullptr, nullptr);
  pace_ = nullptr;
  return done;
}

Status StepRunner::RunWith(const std::vector<bool>& coerce,
                           const std::function<Status(size_t)>& before) {
  return RunEach([&](size_t i) -> Status {
    ETUDE_RETURN_IF_ERROR(before(i));
    RunOne(i, coerce[i]);
    return {};
  });
}

Status StepRunner::RunTimed(const std::vector<bool>& coerce, std::vector<Nanos>& times) {
  times.assign(plan_.ops.size(), Nanos{});
  return RunEach([&](size_t i) -> Status {
    Nanos begin;
    RunOne(
        i, coerce[i], [&] { begin = MonotonicTime(); },
        [&] { times[i] = MonotonicTime() - begin; });
    return {};
  });
}

void StepRunner::Repeat(size_t index, OperatorRepetition& repetition) {
  const BoundOperator& bound = *operators_[index];
  if (bound.communicates() || bound.changes_form()) {
    repetition.failure =
        bound.communicates() ? "communicates" : "changes the shape of its argument";
    return;
  }
  const KeptContent kept(bound.schema(), stack_);
  torch::jit::Stack stack;
  Nanos total;
  try {
    for (int64_t i = 0; i < repetition.most; ++i) {
      if (i >= repetition.least && total >= repetition.enough) break;
      kept.Restore();
      stack = stack_;
      const Nanos begin = MonotonicTime();
      bound.Call(stack);
      const Nanos time = MonotonicTime() - begin;
      ForEachResult(stack, GradientToCome::TakeOff);
      repetition.times.push_back(time);
      total = total + time;
    }
  } catch (const std::exception& error) {
    repetition.failure = FirstLine(error.what());
  }
  kept.Restore();
}

Status StepRunner::RunRepeated(const std::vector<bool>& coerce,
                               std::vector<OperatorRepetition>& repetitions) {
  return RunEach([&](size_t i) -> Status {
    RunOne(
        i, coerce[i],
        [&] {
          if (repetitions[i].least > 0) Repeat(i, repetitions[i]);
        },
        [] {});
    return {};
  });
}

Error StepRunner::Lost(size_t index, std::string_view what) const {
  const NodeId node = plan_.ops[index].node;
  const std::string name(OperatorNameOf(trace_, node));
  return {ErrorCode::kUnavailable,
          fmt::format("node {}, {}: {}; device {} no longer responds to this process; leave the "
                      "operator out with `--skip {}`",
                      trace_.source_id(node), name, FirstLine(what), devices_.target(), name)};
}

Result<std::vector<Observation>> StepRunner::RunObserved(
    const std::function<void(size_t)>& announce) {
  std::vector<Observation> observations(plan_.ops.size());
  OperatorWatch watch;
  for (size_t i = 0; i < plan_.ops.size(); ++i) {
    const PlannedOp& op = plan_.ops[i];
    announce(i);
    try {
      Release(op.release_before);
      Derive(op);
      if (operators_[i]->communicates()) {
        StandIn(i);
        Release(op.release);
        continue;
      }
      if (std::string wrong = WrongArgument(i); !wrong.empty()) {
        throw std::runtime_error(std::move(wrong));
      }
      for (const Content& content : op.given) GiveContent(content);
      operators_[i]->Push(op.inputs, slots_, stack_);
      const GradientToCome gradient(op.inputs, op.differentiated, slots_);
      watch.Begin(&observations[i]);
      operators_[i]->Call(stack_);
      watch.End();
      if (!op.differentiated.empty()) ForEachResult(stack_, GradientToCome::TakeOff);
      // Reveals device errors here.
      Synchronize(devices_.target());
      CompareResults(i, observations[i]);
      Store(i, true);
    } catch (const std::exception& error) {
      watch.End();
      stack_.clear();
      observations[i].failure = FirstLine(error.what());
      if (!IsAlive(devices_.target())) return tl::unexpected<Error>(Lost(i, error.what()));
      StandIn(i);
    }
    Release(op.release);
  }
  Release(plan_.release_at_end);
  return observations;
}

}  // namespace etude
