#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include "src/base/result.h"
#include "src/replay/device_map.h"
#include "src/replay/replay_plan.h"
#include "src/run/step/recorded_step.h"
#include "src/torch/group/rank_group.h"
#include "src/trace/trace.h"

namespace etude {

// A recorded operator call that is ready to run: the registered operator and its arguments. Tensors
// are looked up in slots at each call. Immutable after binding.
class BoundOperator {
 public:
  struct Argument {
    enum class Kind : uint8_t {
      kConstant,
      kTensor,
      kTensors,
      kOptionalTensors,
      kTensorLists,
      kStorage
    };
    Kind kind = Kind::kConstant;
    c10::IValue constant;
    int32_t tensor = -1;           // kTensor, kStorage: index among the recorded tensors
    std::vector<int32_t> tensors;  // lists: indices, -1 for none
    std::vector<Argument> lists;   // kTensorLists
  };

  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  // Returns the arguments, parallel to the schema's.
  std::span<const Argument> arguments() const { return arguments_; }

  // Pushes the arguments on `stack`. `inputs`: slots of the recorded tensors, in order.
  void Push(std::span<const SlotId> inputs, const std::vector<at::Tensor>& slots,
            torch::jit::Stack& stack) const;
  // Runs the operator on the arguments on `stack` and leaves its results there. Throws the
  // operator's exceptions.
  void Call(torch::jit::Stack& stack) const { handle_.callBoxed(stack); }

  // Returns whether the operator consists of other operators only.
  bool is_composite() const { return is_composite_; }
  // Return whether the operator runs on a process group, and whether it returns a Work to wait for.
  bool communicates() const { return communicates_; }
  // A barrier blocks the host thread, even if the memory is on a device.
  bool is_barrier() const { return communicates_ && schema().name() == "c10d::barrier"; }
  bool returns_work() const { return returns_work_; }
  // Returns whether the operator changes sizes or strides of an argument, such as aten::t_.
  bool changes_form() const { return handle_.hasTag(at::Tag::inplace_view); }
  // Channels of a communication, for the progress reported to other ranks.
  struct Channel {
    NodeKind kind = NodeKind::kCollective;  // or kSend, kRecv
    std::optional<int64_t> peer;            // for kSend, kRecv: rank of the job
    std::optional<int64_t> tag;
    std::string group;
    std::string own;
    std::string partners_channel;
    std::vector<int64_t> partners;  // ranks of the job
  };
  const Channel& channel() const { return channel_; }
  // Returns the number of values that the trace lacks (complex numbers, kinds of reduction) or may
  // lack (lists cut by the recorder), and that were replaced or used as they are.
  int assumed_values() const { return assumed_values_; }

 private:
  friend class OperatorBinder;
  explicit BoundOperator(const c10::OperatorHandle& handle) : handle_(handle) {}

  static c10::IValue Make(const Argument& argument, std::span<const SlotId> inputs,
                          const std::vector<at::Tensor>& slots);

  c10::OperatorHandle handle_;
  std::vector<Argument> arguments_;
  bool is_composite_ = false;
  bool communicates_ = false;
  bool returns_work_ = false;
  Channel channel_;
  int assumed_values_ = 0;
};

// Finds the registered operators for recorded schemas and converts recorded arguments to their
// types. Caches parsed schemas. Not thread-safe. Refers to the step, the device map and the group;
// the group is null if a rank is replayed alone.
class OperatorBinder {
 public:
  OperatorBinder(const RecordedStep& step, const DeviceMap& devices, RankGroup* group);
  ~OperatorBinder();

  // Binds an operator. The error message is the reason why it cannot be replayed. kBadInput for a
  // rank that the job or the group lacks, which makes the whole job invalid.
  Result<BoundOperator> Bind(NodeId node);
  // Returns whether the dispatcher has the operator.
  bool IsRegistered(NodeId node);
  // Returns why the operator is not registered or must not run; "" if it may run or was never
  // looked up.
  std::string WhyNotRegistered(NodeId node) const;

 private:
  struct Known;

  const Known& Look(StringId schema);
  static std::optional<c10::IValue> ConstantOf(const Known& known, size_t argument);
  static std::optional<size_t> RecordedPosition(const Known& known, size_t argument);
  Result<BoundOperator::Argument> BindArgument(NodeId node, const Known& known, size_t index,
                                               BoundOperator& bound);
  Result<c10::IValue> Collective(NodeId node, const c10::Argument& argument, const Value* recorded,
                                 BoundOperator& bound);
  static bool IsAsyncFlagOfBarrier(const c10::Argument& argument, const BoundOperator& bound);
  static Status CheckRanks(const BoundOperator& bound);
  BoundOperator::Channel PointToPoint(const BoundOperator& bound) const;
  Result<BoundOperator::Argument> Convert(const Value& value, const c10::TypePtr& type,
                                          int32_t list_size, int32_t first_tensor);
  Result<BoundOperator::Argument> ConvertList(const Value& value, const c10::TypePtr& element,
                                              int32_t list_size, int32_t first_tensor);
  Result<c10::IValue> Scalar(const Value& value, c10::TypeKind kind);
  c10::DispatchKey TargetKey() const;

  const RecordedStep& step_;
  const Trace& trace_;
  const DeviceMap& devices_;
  RankGroup* group_;
  std::unordered_map<StringId, std::unique_ptr<Known>> known_;
  int assumed_ = 0;  // during one Bind
};

}  // namespace etude
