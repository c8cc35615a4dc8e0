#include "src/torch/bound_operator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <ATen/core/List.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "src/formats/pytorch_et/argument_types.h"
#include "src/run/calls/callers.h"
#include "src/run/step/recorded_step.h"
#include "src/run/step/tensor_shape.h"
#include "src/torch/error_text.h"
#include "src/torch/group/collective_arguments.h"
#include "src/trace/value.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using ArgumentKind = c10::TypeKind;

constexpr size_t kLongestSchema = 64 * 1024;

// A trace contains the file name of a kernel in inductor's cache, but not its code.
std::string TritonReason(const Trace& trace, NodeId node) {
  const std::string_view file = trace.text(trace.kernel_file(node));
  return "a Triton kernel: its program" + (file.empty() ? "" : " (" + std::string(file) + ")") +
         " is missing in the trace";
}

// Returns whether an operator reads or writes files, which a trace could name freely.
bool TouchesFiles(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    c10::TypePtr type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->kind() == c10::TypeKind::StringType && IsFileArgument(argument.name());
  });
}

int32_t CountTensors(const Trace& trace, std::span<const Value> values) {
  int32_t count = 0;
  auto add = [&](TensorId) { ++count; };
  ForEachTensor(trace, values, add);
  return count;
}

}  // namespace

// Resolution of a recorded schema text.
struct OperatorBinder::Known {
  std::optional<c10::OperatorHandle> handle;
  std::optional<c10::FunctionSchema> recorded;  // parsed from the text
  std::string name;
  std::string reason;                           // why there is no handle
  std::span<const Equivalent::Source> sources;  // not empty: the handle is an equivalent
};

OperatorBinder::OperatorBinder(const RecordedStep& step, const DeviceMap& devices, RankGroup* group)
    : step_(step), trace_(step.trace()), devices_(devices), group_(group) {}
OperatorBinder::~OperatorBinder() = default;

const OperatorBinder::Known& OperatorBinder::Look(StringId schema) {
  std::unique_ptr<Known>& slot = known_[schema];
  if (slot) return *slot;
  slot = std::make_unique<Known>();
  Known& known = *slot;
  const std::string_view text = trace_.text(schema);
  known.name = FullOperatorName(text);
  if (text.size() > kLongestSchema) {
    known.reason = "schema text is too long";
    return known;
  }
  const std::string_view refusal = ReasonNotToRun(known.name);
  if (!refusal.empty()) {
    known.reason = refusal;
    return known;
  }
  try {
    known.recorded = torch::jit::parseSchema(std::string(text));
    auto& dispatcher = c10::Dispatcher::singleton();
    known.handle = dispatcher.findSchema(known.recorded->operator_name());
    if (known.handle && TouchesFiles(known.handle->schema())) {
      known.reason = kTouchesFiles;
      known.handle.reset();
      return known;
    }
    const bool runs = known.handle && known.handle->hasComputedKernelForDispatchKey(TargetKey());
    const Equivalent* equivalent = FindEquivalent(known.name);
    const bool fails = equivalent != nullptr && equivalent->fails_on_cpu;
    if (runs && !(fails && devices_.target_is_cpu())) return known;
    if (equivalent != nullptr) {
      const c10::OperatorName replacement =
          torch::jit::parseName(std::string(equivalent->replacement));
      known.handle = dispatcher.findSchema(replacement);
      known.sources = equivalent->arguments;
      if (known.handle) return known;
    }
    if (!known.handle) {
      known.reason = "not registered in this torch or in a loaded library";
    } else if (known.handle->hasComputedKernelForDispatchKey(c10::DispatchKey::SparseCPU)) {
      known.reason = "uses sparse tensors, which a replay does not support";
    } else {
      known.reason = "no kernel on " + devices_.target();
    }
    known.handle.reset();
  } catch (const std::exception& error) {
    known.handle.reset();
    known.reason = "unsupported schema: " + FirstLine(error.what());
  }
  return known;
}

bool OperatorBinder::IsRegistered(NodeId node) {
  const Known& known = Look(trace_.op_schema(node));
  return known.handle.has_value();
}

std::string OperatorBinder::WhyNotRegistered(NodeId node) const {
  const auto known = known_.find(trace_.op_schema(node));
  return known == known_.end() ? "" : known->second->reason;
}

// Returns an argument of a collective: a process group, its name, or a reduction.
Result<c10::IValue> OperatorBinder::Collective(NodeId node, const c10::Argument& argument,
                                               const Value* recorded, BoundOperator& bound) {
  const CollectiveRole role = RoleOf(argument);
  if (role == CollectiveRole::kReduction) return ReductionOf(trace_, node, recorded, assumed_);
  ETUDE_ASSIGN_OR_RETURN(JobGroup group, GroupOf(step_, node, recorded, *group_));
  bound.channel_ = {.group = group.name,
                    .own = "group " + group.name,
                    .partners_channel = "group " + group.name,
                    .partners = std::move(group.ranks)};
  const bool by_name = recorded != nullptr && recorded->kind == ValueKind::kString;
  return role == CollectiveRole::kGroupName && by_name
             ? Scalar(*recorded, ArgumentKind::StringType)
             : Result<c10::IValue>(std::move(group.value));
}

bool OperatorBinder::IsAsyncFlagOfBarrier(const c10::Argument& argument,
                                          const BoundOperator& bound) {
  return bound.is_barrier() && IsAsyncFlag(argument.name());
}

// Checks that the peer of a message, or the root of a collective, is in the bound group.
Status OperatorBinder::CheckRanks(const BoundOperator& bound) {
  const auto size = static_cast<int64_t>(bound.channel_.partners.size());
  const auto& arguments = bound.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name();
    if (name != "dst" && name != "src" && name != "root_rank") continue;
    const c10::IValue& value = bound.arguments_[i].constant;
    if (!value.isInt() || (value.toInt() >= 0 && value.toInt() < size)) continue;
    return BadInput(fmt::format("{} is rank {} of process group '{}', expected one below {}", name,
                                value.toInt(), bound.channel_.group, size));
  }
  return {};
}

// Returns the channel of a send or receive whose group is bound.
BoundOperator::Channel OperatorBinder::PointToPoint(const BoundOperator& bound) const {
  BoundOperator::Channel channel = bound.channel_;
  const auto kind = PointToPointFromName(bound.schema().name());
  if (!kind) return channel;
  channel.kind = *kind;
  const bool sends = channel.kind == NodeKind::kSend;
  const auto& arguments = bound.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = bound.arguments_[i].constant;
    if (!value.isInt()) continue;
    const int64_t number = value.toInt();
    if (arguments[i].name() == "tag") channel.tag = number;
    if (arguments[i].name() != (sends ? "dst" : "src")) continue;
    channel.peer = channel.partners[static_cast<size_t>(number)];
  }
  if (!channel.peer) {
    // A receive from any rank waits until one of the others sends.
    channel.own = channel.partners_channel = "receive from any";
    return channel;
  }
  const int64_t from = sends ? group_->rank() : *channel.peer;
  const int64_t to = sends ? *channel.peer : group_->rank();
  const auto name = [&](std::string_view end) { return fmt::format("{} {} to {}", end, from, to); };
  channel.own = name(sends ? "send" : "receive");
  channel.partners_channel = name(sends ? "receive" : "send");
  channel.partners = {*channel.peer};
  return channel;
}

// Returns the constant that an equivalent uses for an argument; nullopt: it uses a recorded one.
std::optional<c10::IValue> OperatorBinder::ConstantOf(const Known& known, size_t argument) {
  if (argument >= known.sources.size()) return std::nullopt;
  switch (known.sources[argument].kind) {
    case Equivalent::Source::Kind::kArgument: return std::nullopt;
    case Equivalent::Source::Kind::kNone: return c10::IValue();
    case Equivalent::Source::Kind::kFalse: return c10::IValue(false);
    case Equivalent::Source::Kind::kTrue: return c10::IValue(true);
    case Equivalent::Source::Kind::kZeros: return c10::IValue(c10::List<int64_t>({0}));
    case Equivalent::Source::Kind::kAllTrue:
      return c10::IValue(c10::List<bool>({true, true, true}));
  }
  return std::nullopt;
}

// Returns the position of the recorded value for an argument of the operator that runs, or none.
std::optional<size_t> OperatorBinder::RecordedPosition(const Known& known, size_t argument) {
  if (!known.sources.empty()) return static_cast<size_t>(known.sources[argument].argument);
  const auto& arguments = known.handle->schema().arguments();
  const auto& recorded = known.recorded->arguments();
  if (recorded.size() == arguments.size()) return argument;
  const auto same = std::ranges::find(recorded, arguments[argument].name(), &c10::Argument::name);
  if (same == recorded.end()) return std::nullopt;
  return static_cast<size_t>(same - recorded.begin());
}

Result<BoundOperator::Argument> OperatorBinder::BindArgument(NodeId node, const Known& known,
                                                             size_t index, BoundOperator& bound) {
  using Kind = BoundOperator::Argument::Kind;
  const c10::Argument& argument = known.handle->schema().arguments()[index];
  const auto values = trace_.inputs(node);
  BoundOperator::Argument made;
  if (auto constant = ConstantOf(known, index)) {
    made.constant = *std::move(constant);
    return made;
  }
  const std::optional<size_t> position = RecordedPosition(known, index);
  const Value* const value = position && *position < values.size() ? &values[*position] : nullptr;
  if (bound.communicates_ && RoleOf(argument) != CollectiveRole::kNone) {
    ETUDE_ASSIGN_OR_RETURN(made.constant, Collective(node, argument, value, bound));
    return made;
  }
  if (IsAsyncFlagOfBarrier(argument, bound) && group_->UsesNccl(bound.channel_.group)) {
    // Otherwise it would block this thread without limit; StepRunner waits for it.
    made.constant = true;
    return made;
  }
  // The group's own timeout applies, not the recorded one.
  const bool is_timeout = bound.communicates_ && argument.name() == "timeout";
  if (value == nullptr || is_timeout) {
    if (!position && argument.type()->kind() == ArgumentKind::OptionalType) {
      return made;  // the recorded version lacked this argument
    }
    if (!argument.default_value()) {
      return Unavailable("argument '" + argument.name() + "' is not recorded and has no default");
    }
    made.constant = *argument.default_value();
    return made;
  }
  const int32_t first = CountTensors(trace_, values.first(*position));
  if (argument.type()->kind() == ArgumentKind::StorageType && IsStorage(trace_, *value)) {
    // The memory of the first result is recorded after the tensors: see DataFlow.
    const auto before = std::ranges::count_if(
        values.first(*position), [&](const Value& other) { return IsStorage(trace_, other); });
    made.kind = Kind::kStorage;
    made.tensor = CountTensors(trace_, values) + static_cast<int32_t>(before);
    return made;
  }
  auto converted = Convert(*value, argument.type(), argument.N().value_or(0), first);
  if (!converted) {
    return Unavailable("argument '" + argument.name() + "' of type " +
                       argument.type()->annotation_str() + ": " + converted.error().message);
  }
  return converted;
}

Result<BoundOperator> OperatorBinder::Bind(NodeId node) {
  if (IsTritonKernel(trace_, node)) return Unavailable(TritonReason(trace_, node));
  const Known& known = Look(trace_.op_schema(node));
  if (!known.handle) return Unavailable(known.reason);
  assumed_ = 0;
  BoundOperator bound(*known.handle);
  const c10::FunctionSchema& schema = known.handle->schema();
  bound.communicates_ = std::ranges::any_of(schema.arguments(), [](const auto& argument) {
    const CollectiveRole role = RoleOf(argument);
    return role == CollectiveRole::kGroup || role == CollectiveRole::kGroupName;
  });
  bound.returns_work_ =
      bound.communicates_ && std::ranges::any_of(schema.returns(), [](const auto& result) {
        return result.type()->kind() == ArgumentKind::ClassType;
      });
  if (bound.communicates_ && group_ == nullptr) {
    return Unavailable("collective: requires the other ranks (--ranks all)");
  }
  bound.arguments_.reserve(schema.arguments().size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(auto argument, BindArgument(node, known, i, bound));
    bound.arguments_.push_back(std::move(argument));
  }
  if (bound.communicates_) {
    ETUDE_RETURN_IF_ERROR(CheckRanks(bound));
    bound.channel_ = PointToPoint(bound);
    if (bound.channel_.kind == NodeKind::kRecv && !bound.channel_.peer &&
        group_->UsesNccl(bound.channel_.group)) {
      return Unavailable("NCCL does not support receives from any rank");
    }
  }
  bound.is_composite_ =
      known.handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
      !known.handle->hasKernelForDispatchKey(TargetKey());
  bound.assumed_values_ = assumed_;
  return bound;
}

c10::DispatchKey OperatorBinder::TargetKey() const {
  return c10::computeDispatchKey(std::nullopt, std::nullopt, c10::Device(devices_.target()));
}

Result<c10::IValue> OperatorBinder::Scalar(const Value& value, c10::TypeKind kind) {
  const auto wrong = [&]() -> Result<c10::IValue> {
    return Unavailable("found a recorded value of type '" + std::string(trace_.text(value.type)) +
                       "'");
  };
  switch (kind) {
    case ArgumentKind::IntType:
    case ArgumentKind::SymIntType:
    case ArgumentKind::ScalarTypeType:
    case ArgumentKind::LayoutType:
    case ArgumentKind::MemoryFormatType:
    case ArgumentKind::QSchemeType:
      if (value.kind == ValueKind::kInt) return c10::IValue(value.as_int());
      if (value.kind == ValueKind::kBool) return c10::IValue(int64_t{value.as_bool()});
      if (value.kind == ValueKind::kDouble && std::trunc(value.as_double()) == value.as_double() &&
          std::abs(value.as_double()) < 9e15) {
        return c10::IValue(static_cast<int64_t>(value.as_double()));
      }
      return wrong();
    case ArgumentKind::FloatType:
    case ArgumentKind::SymFloatType:
      if (value.kind == ValueKind::kDouble) return c10::IValue(value.as_double());
      if (value.kind == ValueKind::kInt) {
        return c10::IValue(static_cast<double>(value.as_int()));
      }
      if (value.kind == ValueKind::kString) {
        const auto special = NamedDouble(trace_.text(value.as_text()));
        if (special) return c10::IValue(*special);
      }
      return wrong();
    case ArgumentKind::BoolType:
    case ArgumentKind::SymBoolType:
      if (value.kind == ValueKind::kBool) return c10::IValue(value.as_bool());
      if (value.kind == ValueKind::kInt) return c10::IValue(value.as_int() != 0);
      return wrong();
    case ArgumentKind::NumberType:
    case ArgumentKind::ComplexType: {
      if (value.kind == ValueKind::kInt) return c10::IValue(value.as_int());
      if (value.kind == ValueKind::kDouble) return c10::IValue(value.as_double());
      if (value.kind == ValueKind::kBool) return c10::IValue(value.as_bool());
      const bool is_text = value.kind == ValueKind::kString || value.kind == ValueKind::kOpaque;
      const std::string_view text = is_text ? trace_.text(value.as_text()) : std::string_view();
      if (const auto special = NamedDouble(text)) return c10::IValue(*special);
      if (const auto complex = ComplexNumber(text)) {
        return c10::IValue(c10::complex<double>(*complex));
      }
      // The observer records complex numbers without their value.
      if (text.find("Complex") != std::string_view::npos) {
        ++assumed_;
        return c10::IValue(c10::complex<double>(1.0, 0.0));
      }
      return wrong();
    }
    case ArgumentKind::StringType:
      if (value.kind == ValueKind::kString || value.kind == ValueKind::kDevice) {
        return c10::IValue(std::string(trace_.text(value.as_text())));
      }
      return wrong();
    case ArgumentKind::DeviceObjType:
      if (value.kind == ValueKind::kString || value.kind == ValueKind::kDevice) {
        return c10::IValue(c10::Device(devices_.Map(trace_.text(value.as_text()))));
      }
      return wrong();
    default: return Unavailable("its value is missing in the trace");
  }
}

Result<BoundOperator::Argument> OperatorBinder::Convert(const Value& value,
                                                        const c10::TypePtr& type, int32_t list_size,
                                                        int32_t first_tensor) {
  BoundOperator::Argument argument;
  using Kind = BoundOperator::Argument::Kind;
  switch (type->kind()) {
    case ArgumentKind::OptionalType: {
      if (value.kind == ValueKind::kNone) return argument;
      const auto& element = type->expectRef<c10::OptionalType>().getElementType();
      if (element->kind() == ArgumentKind::GeneratorType) return argument;
      return Convert(value, element, list_size, first_tensor);
    }
    case ArgumentKind::GeneratorType: return argument;  // none: the default generator
    case ArgumentKind::TensorType:
      if (value.kind == ValueKind::kTensor) {
        argument.kind = Kind::kTensor;
        argument.tensor = first_tensor;
        return argument;
      }
      if (value.kind == ValueKind::kNone) {
        argument.constant = at::Tensor();
        return argument;
      }
      return Unavailable("found a recorded value of type '" + std::string(trace_.text(value.type)) +
                         "'");
    case ArgumentKind::ListType: {
      const auto& element = type->expectRef<c10::ListType>().getElementType();
      return ConvertList(value, element, list_size, first_tensor);
    }
    default: {
      auto scalar = Scalar(value, type->kind());
      if (!scalar) return tl::unexpected<Error>(scalar.error());
      argument.constant = *std::move(scalar);
      return argument;
    }
  }
}

namespace {

template <typename T, typename Get>
Result<c10::IValue> ListOf(const std::vector<c10::IValue>& items, Get get) {
  c10::List<T> list;
  list.reserve(items.size());
  for (const c10::IValue& item : items) list.push_back(get(item));
  return c10::IValue(std::move(list));
}

// Makes a list of `kind` from its elements.
Result<c10::IValue> MakeList(c10::TypeKind kind, const std::vector<c10::IValue>& items) {
  switch (kind) {
    case ArgumentKind::IntType:
    case ArgumentKind::SymIntType:
      return ListOf<int64_t>(items, [](const c10::IValue& item) { return item.toInt(); });
    case ArgumentKind::FloatType:
      return ListOf<double>(items, [](const c10::IValue& item) { return item.toDouble(); });
    case ArgumentKind::BoolType:
      return ListOf<bool>(items, [](const c10::IValue& item) { return item.toBool(); });
    case ArgumentKind::StringType:
      return ListOf<std::string>(items, [](const c10::IValue& item) { return item.toStringRef(); });
    case ArgumentKind::DeviceObjType:
      return ListOf<c10::Device>(items, [](const c10::IValue& item) { return item.toDevice(); });
    case ArgumentKind::NumberType: {
      c10::impl::GenericList list(c10::NumberType::get());
      list.reserve(items.size());
      for (const c10::IValue& item : items) list.push_back(item);
      return c10::IValue(std::move(list));
    }
    default: return Unavailable("lists of this type are not supported");
  }
}

}  // namespace

Result<BoundOperator::Argument> OperatorBinder::ConvertList(const Value& value,
                                                            const c10::TypePtr& element,
                                                            int32_t list_size,
                                                            int32_t first_tensor) {
  BoundOperator::Argument argument;
  using Kind = BoundOperator::Argument::Kind;
  const bool of_tensors = element->kind() == ArgumentKind::TensorType;
  const bool of_optionals = element->kind() == ArgumentKind::OptionalType;
  if (value.kind == ValueKind::kList) {
    const auto items = trace_.values(value.as_list());
    if (items.size() >= kObserverListLimit) ++assumed_;
    if (of_tensors ||
        (of_optionals && element->expectRef<c10::OptionalType>().getElementType()->kind() ==
                             ArgumentKind::TensorType)) {
      argument.kind = of_tensors ? Kind::kTensors : Kind::kOptionalTensors;
      int32_t next = first_tensor;
      for (const Value& item : items) {
        if (item.kind == ValueKind::kTensor) {
          argument.tensors.push_back(next++);
        } else if (item.kind == ValueKind::kNone) {
          argument.tensors.push_back(-1);
        } else {
          return Unavailable("found a list element of type '" +
                             std::string(trace_.text(item.type)) + "', expected a tensor");
        }
      }
      return argument;
    }
    if (element->kind() == ArgumentKind::ListType) {
      argument.kind = Kind::kTensorLists;
      const auto& inner = element->expectRef<c10::ListType>().getElementType();
      int32_t next = first_tensor;
      for (const Value& item : items) {
        ETUDE_ASSIGN_OR_RETURN(auto list, ConvertList(item, inner, 0, next));
        next += CountTensors(trace_, {&item, 1});
        argument.lists.push_back(std::move(list));
      }
      return argument;
    }
    std::vector<c10::IValue> converted;
    converted.reserve(items.size());
    for (const Value& item : items) {
      ETUDE_ASSIGN_OR_RETURN(auto scalar, Scalar(item, element->kind()));
      converted.push_back(std::move(scalar));
    }
    ETUDE_ASSIGN_OR_RETURN(argument.constant, MakeList(element->kind(), converted));
    return argument;
  }
  // "int[2]" accepts one number for all elements.
  if (list_size > 0 && !of_tensors && !of_optionals) {
    ETUDE_ASSIGN_OR_RETURN(const auto scalar, Scalar(value, element->kind()));
    const std::vector<c10::IValue> repeated(static_cast<size_t>(list_size), scalar);
    ETUDE_ASSIGN_OR_RETURN(argument.constant, MakeList(element->kind(), repeated));
    return argument;
  }
  return Unavailable("found a recorded value of type '" + std::string(trace_.text(value.type)) +
                     "', expected a list");
}

c10::IValue BoundOperator::Make(const Argument& argument, std::span<const SlotId> inputs,
                                const std::vector<at::Tensor>& slots) {
  const auto tensor = [&](int32_t position) -> at::Tensor {
    const SlotId slot = inputs[static_cast<size_t>(position)];
    return slot ? slots[slot.index()] : at::Tensor();
  };
  switch (argument.kind) {
    case Argument::Kind::kConstant: return argument.constant;
    case Argument::Kind::kTensor: return tensor(argument.tensor);
    case Argument::Kind::kStorage:
      // Without an earlier result the operator gets none, and throws.
      if (static_cast<size_t>(argument.tensor) >= inputs.size()) return {};
      return tensor(argument.tensor).storage();
    case Argument::Kind::kTensors: {
      c10::List<at::Tensor> list;
      list.reserve(argument.tensors.size());
      for (const int32_t position : argument.tensors) {
        list.push_back(position < 0 ? at::Tensor() : tensor(position));
      }
      return list;
    }
    case Argument::Kind::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(argument.tensors.size());
      for (const int32_t position : argument.tensors) {
        list.push_back(position < 0 ? std::nullopt : std::optional(tensor(position)));
      }
      return list;
    }
    case Argument::Kind::kTensorLists: {
      c10::impl::GenericList lists(c10::ListType::create(c10::TensorType::get()));
      for (const Argument& inner : argument.lists) lists.push_back(Make(inner, inputs, slots));
      return lists;
    }
  }
  return {};
}

void BoundOperator::Push(std::span<const SlotId> inputs, const std::vector<at::Tensor>& slots,
                         torch::jit::Stack& stack) const {
  stack.clear();
  for (const Argument& argument : arguments_) stack.push_back(Make(argument, inputs, slots));
}

}  // namespace etude
