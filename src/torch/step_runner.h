#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Event.h>

#include "src/analysis/time/host_gaps.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/replay/comm_batches.h"
#include "src/replay/replay_plan.h"
#include "src/run/waits/communication_waits.h"
#include "src/torch/bound_operator.h"
#include "src/torch/group/rank_group.h"
#include "src/torch/memory/outside_memory.h"
#include "src/torch/operator_repetition.h"

namespace etude {

// Number of runs by full operator name.
using OperatorCounts = std::map<std::string, int64_t, std::less<>>;

// Result of an observed run of one operator.
struct Observation {
  std::string failure;       // reason, if the operator threw; otherwise ""
  OperatorCounts operators;  // all operators that ran, including this one
  bool wrong_shape = false;  // a result has unrecorded sizes
  bool wrong_type = false;   // a result has an unrecorded element type
};

// Pace of an emulated machine: factors on operator times, and durations of communications.
struct StepPace {
  double host = 1;  // factor on time between operators
  std::vector<double> operators;
  std::vector<Nanos> expected;  // duration of communications with other ranks
};

// Runs the operators of a plan in order, on slots of tensors, and waits for communications as
// planned. Not thread-safe; refers to the trace, the flow and the plan's operators.
class StepRunner {
 public:
  StepRunner(const Trace& trace, const DataFlow& flow, const DeviceMap& devices)
      : trace_(trace), flow_(flow), devices_(devices) {}

  // Loads a plan, its operators (parallel to plan.ops), and the waits for communications. Clears
  // all slots. `group`: the communicating ranks, or null; not owned.
  void Load(ReplayPlan plan, std::vector<const BoundOperator*> operators,
            std::span<const CommunicationWait> waits, RankGroup* group);
  const ReplayPlan& plan() const { return plan_; }
  std::vector<at::Tensor>& slots() { return slots_; }
  // Returns the indices of the communications to wait for before each operator, with an additional
  // entry for the end of the step.
  const std::vector<std::vector<uint32_t>>& waits() const { return waits_; }
  // Returns the batches of sends and receives, for groups that support them.
  const std::vector<CommBatch>& batches() const { return batches_; }
  // Returns whether the step waits for the communication immediately.
  bool IsAwaitedAtOnce(uint32_t communication) const;

  // Runs one step, including Finish. `coerce`: by operator, whether results are converted to the
  // recorded sizes and types. kInternal with operator and schema if an operator throws.
  Status Run(const std::vector<bool>& coerce);
  // Runs one step with at least the time of `gaps` between operators: this thread first sleeps for
  // the program's idle time, then is busy, less the time already spent on freeing memory and the
  // like. A wait for a collective comes before the gap. `passed`: time of the gaps.
  Status RunWithGaps(const std::vector<bool>& coerce, const HostGaps& gaps, PassedGaps& passed);
  // Runs one step at the pace of an emulated machine; `gaps` may be null.
  Status RunStretched(const std::vector<bool>& coerce, const StepPace& pace, const HostGaps* gaps,
                      PassedGaps& passed);
  // Runs one step and stores the time of each operator's call in `times`. Waits for communication
  // are not part of it.
  Status RunTimed(const std::vector<bool>& coerce, std::vector<Nanos>& times);
  // Runs one step on the CPU and repeats operators directly before they run: on the same arguments,
  // whose content is restored before each call. `repetitions`: by operator.
  Status RunRepeated(const std::vector<bool>& coerce, std::vector<OperatorRepetition>& repetitions);
  // Runs one step and calls `before` with each operator's index.
  Status RunWith(const std::vector<bool>& coerce, const std::function<Status(size_t)>& before);
  // Runs one step that continues after failures, with zeros for missing results, and returns an
  // observation per operator. Results of unrecorded sizes or types are coerced. Calls `announce`
  // with each operator's index before it runs. Collectives are skipped and count as done.
  // kUnavailable if an operator leaves the device unusable, for example by a failed assertion in a
  // kernel.
  Result<std::vector<Observation>> RunObserved(const std::function<void(size_t)>& announce);
  // Waits until the device has finished the step; on the CPU it returns immediately. kInternal if
  // there is no progress for longer than a communication's timeout.
  Status Finish();
  // Frees all tensors except outside memory.
  void Clear();

  // Returns the progress of the running thread. Any thread may call it after Load.
  RankStatus Progress() const;

 private:
  // Calls `run(index)`, which returns a Status, for each operator, and ends the step.
  template <typename Fn>
  Status RunEach(Fn run);
  // `before_call` is called immediately before the operator, `after_call` immediately after it.
  template <typename Before, typename After>
  void RunOne(size_t index, bool coerce, Before before_call, After after_call);
  void RunOne(size_t index, bool coerce);
  // Repeats the operator whose arguments are on the stack.
  void Repeat(size_t index, OperatorRepetition& repetition);
  // Makes the views that unrecorded code made before the operator. Throws errors of invalid views.
  void Derive(const PlannedOp& op);
  void Await(uint32_t collective);
  // Returns the operator's batch, if its group supports batches.
  const CommBatch* TakenBatch(size_t index) const;
  void EndBatch(const CommBatch& batch);
  // Returns whether the device communicates with other ranks, which may keep it waiting.
  bool IsAwaitedByDevice() const;
  // Notes that the device has to pass the wait for this communication.
  void NoteWait(uint32_t collective);
  // Waits until the device has passed the noted waits and `over` returns true. Throws after too
  // long without progress.
  void HoldForDevice(const std::function<bool()>& over);
  void StretchCommunication(uint32_t collective, Nanos begin);
  Error Failure(std::string_view what) const;
  // Returns the error for an operator that made the device unusable.
  Error Lost(size_t index, std::string_view what) const;
  void Store(size_t index, bool coerce);
  void GiveContent(const Content& content);
  // Describes the first argument with an unrecorded element type; "" if there is none.
  std::string WrongArgument(size_t index) const;
  void StandIn(size_t index);
  // Compares the results on the stack with the recorded ones.
  void CompareResults(size_t index, Observation& seen) const;
  void Release(const std::vector<SlotId>& slots);

  const Trace& trace_;
  const DataFlow& flow_;
  const DeviceMap& devices_;
  ReplayPlan plan_;
  std::vector<const BoundOperator*> operators_;
  std::vector<at::Tensor> slots_;
  torch::jit::Stack stack_;
  const StepPace* pace_ = nullptr;   // set during RunStretched
  std::vector<Nanos> begun_;         // during RunStretched, by operator: begin of its communication
  Nanos waited_until_;               // end of the last wait for a collective
  std::atomic<size_t> at_ = 0;       // current operator, for errors
  std::atomic<size_t> reached_ = 0;  // last operator that has begun
  std::atomic<int64_t> steps_ = 0;   // completed steps
  std::vector<std::vector<uint32_t>> waits_;
  std::vector<c10::IValue> works_;  // by operator: works not waited for yet
  RankGroup* group_ = nullptr;
  std::vector<CommBatch> batches_;
  // A wait on the device, with the event after it.
  struct DeviceWait {
    uint32_t collective = 0;
    c10::Event passed;
  };
  std::vector<DeviceWait> device_waits_;  // in this step, in order
};

}  // namespace etude
