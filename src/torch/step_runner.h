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

namespace etude {

// Operators by full name with how often they ran.
using OperatorCounts = std::map<std::string, int64_t, std::less<>>;

// What an observed run of one operator showed.
struct Observation {
  std::string failure;       // the reason, if the operator threw; else ""
  OperatorCounts operators;  // all operators that ran, this one included
  bool wrong_shape = false;  // a result has other sizes than the recorded one
  bool wrong_type = false;   // a result has elements of another type than the recorded one
};

// How the steps of an emulated machine run: by operator, by how much longer than they do here, and
// of communications how much longer in time.
struct StepPace {
  double host = 1;  // what is between operators
  std::vector<double> operators;
  std::vector<Nanos> expected;  // of communications that others take part in: how long they take
};

// Runs the operators of a plan, one after the other, on slots of tensors, and waits for
// communications where it is told. Not thread-safe; refers to the trace, the flow and the plan's
// operators.
class StepRunner {
 public:
  StepRunner(const Trace& trace, const DataFlow& flow, const DeviceMap& devices)
      : trace_(trace), flow_(flow), devices_(devices) {}

  // Takes a plan, its operators, parallel to plan.ops, and where they are waited for. Slots are
  // emptied. `group`: the ranks that communicate, or null; not owned.
  void Load(ReplayPlan plan, std::vector<const BoundOperator*> operators,
            std::span<const CommunicationWait> waits, RankGroup* group);
  const ReplayPlan& plan() const { return plan_; }
  std::vector<at::Tensor>& slots() { return slots_; }
  // By operator, and one more for the end of the step: the communications, by index, that are
  // waited for after the operator before has returned.
  const std::vector<std::vector<uint32_t>>& waits() const { return waits_; }
  // The sends and receives that a group is given at once, if it takes them so.
  const std::vector<CommBatch>& batches() const { return batches_; }
  // Whether the communication is waited for before the step goes on.
  bool IsAwaitedAtOnce(uint32_t communication) const;

  // One step, which ends with Finish. `coerce`: by operator, whether results are brought to the
  // recorded sizes and types. kInternal with operator and schema if an operator throws.
  Status Run(const std::vector<bool>& coerce);
  // The same with at least the time of `gaps` between operators, in which this thread sleeps for as
  // long as the program did, and then is busy with nothing for as long as freeing memory and the
  // like did not take; where a collective is waited for, after that. `passed`: that time.
  Status RunWithGaps(const std::vector<bool>& coerce, const HostGaps& gaps, PassedGaps& passed);
  // The same at the pace of an emulated machine; `gaps` may be null.
  Status RunStretched(const std::vector<bool>& coerce, const StepPace& pace, const HostGaps* gaps,
                      PassedGaps& passed);
  // The same, calling `before` with each operator's index.
  Status RunWith(const std::vector<bool>& coerce, const std::function<Status(size_t)>& before);
  // One step that goes on after failures, results that are missing being replaced by zeros, and
  // tells what each operator did. Results of other sizes or types than recorded are coerced.
  // `announce` is called with each operator's index before it runs. Collectives do not run: they
  // count as done. kUnavailable if an operator leaves a device that does nothing more, as a failed
  // assertion in a kernel does.
  Result<std::vector<Observation>> RunObserved(const std::function<void(size_t)>& announce);
  // Returns when the device has done the step that has been run: on the CPU at once. kInternal if
  // it gets no further for longer than a communication with other ranks may take.
  Status Finish();
  // Frees everything but what comes from outside.
  void Clear();

  // What the thread that runs is at; for any thread, once a plan is loaded.
  RankStatus Progress() const;

 private:
  // Calls `run(index)`, which gives a Status, for each operator, and ends the step.
  template <typename Fn>
  Status RunEach(Fn run);
  // `before_call` is called when all is ready but the operator, `after_call` when it has returned.
  template <typename Before, typename After>
  void RunOne(size_t index, bool coerce, Before before_call, After after_call);
  void RunOne(size_t index, bool coerce);
  // Makes the views that unrecorded code made before the operator. Throws what is wrong with one.
  void Derive(const PlannedOp& op);
  void Await(uint32_t collective);
  // The batch that the operator belongs to, if its group takes batches.
  const CommBatch* TakenBatch(size_t index) const;
  void EndBatch(const CommBatch& batch);
  // Whether the device works for other ranks, which may keep it waiting.
  bool IsAwaitedByDevice() const;
  // Notes that the device has the wait for this communication before it.
  void NoteWait(uint32_t collective);
  // Returns when the device has passed the waits that were noted and `over` holds. Throws if it
  // gets no further for too long.
  void HoldForDevice(const std::function<bool()>& over);
  void StretchCommunication(uint32_t collective, Nanos begin);
  Error Failure(std::string_view what) const;
  // Of an operator that has taken the device with it.
  Error Lost(size_t index, std::string_view what) const;
  void Store(size_t index, bool coerce);
  void GiveContent(const Content& content);
  // Of the first argument whose element type is not the recorded one what is wrong; else "".
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
  const StepPace* pace_ = nullptr;   // while RunStretched runs
  std::vector<Nanos> begun_;         // then, by operator: when a communication began
  Nanos waited_until_;               // when the last wait for a collective ended
  std::atomic<size_t> at_ = 0;       // the operator at work: who fails
  std::atomic<size_t> reached_ = 0;  // the last operator that has begun
  std::atomic<int64_t> steps_ = 0;   // that ended
  std::vector<std::vector<uint32_t>> waits_;
  std::vector<c10::IValue> works_;  // by operator: what is not waited for yet
  RankGroup* group_ = nullptr;
  std::vector<CommBatch> batches_;
  // A wait that a device was given, and what tells that it is over.
  struct DeviceWait {
    uint32_t collective = 0;
    c10::Event passed;
  };
  std::vector<DeviceWait> device_waits_;  // of this step, in order
};

}  // namespace etude
