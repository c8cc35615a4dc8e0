#include "src/torch/standalone_program.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "src/analysis/view/modules.h"
#include "src/base/text/ascii.h"
#include "src/run/activity.h"
#include "src/run/step/tensor_shape.h"
#include "src/torch/group/collective_arguments.h"
#include "src/trace/words/distributed_value.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using ValueRole = ProgramValue::Kind;

// Operator names become code. They come from the dispatcher, which gets them from libraries.
bool IsPlainName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, IsWord);
}

bool IsOperatorName(std::string_view name) {
  const size_t colons = name.find("::");
  return colons != std::string_view::npos && IsPlainName(name.substr(0, colons)) &&
         IsPlainName(name.substr(colons + 2));
}

// Returns torch's Python name of an element type, by c10's number.
Result<std::string> DTypeName(int64_t number) {
  const DType dtype = DTypeFromScalarType(number);
  if (dtype != DType::kUnknown) return std::string(Name(dtype));
  return Unavailable("element type " + std::to_string(number));
}

Result<std::string> LayoutName(int64_t number) {
  switch (static_cast<c10::Layout>(number)) {
    case c10::Layout::Strided: return std::string("strided");
    case c10::Layout::Sparse: return std::string("sparse_coo");
    default: return Unavailable("layout " + std::to_string(number));
  }
}

Result<std::string> MemoryFormatName(int64_t number) {
  switch (static_cast<c10::MemoryFormat>(number)) {
    case c10::MemoryFormat::Contiguous: return std::string("contiguous_format");
    case c10::MemoryFormat::Preserve: return std::string("preserve_format");
    case c10::MemoryFormat::ChannelsLast: return std::string("channels_last");
    case c10::MemoryFormat::ChannelsLast3d: return std::string("channels_last_3d");
    default: return Unavailable("memory format " + std::to_string(number));
  }
}

Result<ProgramValue> Named(ValueRole kind, Result<std::string> name) {
  if (!name) return tl::unexpected<Error>(name.error());
  return ProgramValue{.kind = kind, .text = *std::move(name)};
}

// Returns a constant of an argument of type `type`.
Result<ProgramValue> ValueOf(const c10::IValue& value, const c10::TypePtr& type) {
  if (value.isNone()) return ProgramValue{};
  if (type->kind() == c10::TypeKind::OptionalType) {
    return ValueOf(value, type->expectRef<c10::OptionalType>().getElementType());
  }
  if (value.isTensor() && !value.toTensor().defined()) return ProgramValue{};
  if (value.isBool())
    return ProgramValue{.kind = ValueRole::kBool, .integer = value.toBool() ? 1 : 0};
  if (value.isInt()) {
    switch (type->kind()) {
      case c10::TypeKind::ScalarTypeType: return Named(ValueRole::kDType, DTypeName(value.toInt()));
      case c10::TypeKind::LayoutType: return Named(ValueRole::kLayout, LayoutName(value.toInt()));
      case c10::TypeKind::MemoryFormatType:
        return Named(ValueRole::kMemoryFormat, MemoryFormatName(value.toInt()));
      default: return ProgramValue{.kind = ValueRole::kInt, .integer = value.toInt()};
    }
  }
  if (value.isDouble()) return ProgramValue{.kind = ValueRole::kDouble, .real = value.toDouble()};
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    return ProgramValue{
        .kind = ValueRole::kComplex, .real = number.real(), .imaginary = number.imag()};
  }
  if (value.isString()) return ProgramValue{.kind = ValueRole::kText, .text = value.toStringRef()};
  if (value.isDevice()) return ProgramValue{.kind = ValueRole::kDevice};
  if (value.isList()) {
    ProgramValue list{.kind = ValueRole::kList};
    const auto& element = type->kind() == c10::TypeKind::ListType
                              ? type->expectRef<c10::ListType>().getElementType()
                              : type;
    for (const c10::IValue& item : value.toListRef()) {
      ETUDE_ASSIGN_OR_RETURN(ProgramValue one, ValueOf(item, element));
      list.items.push_back(std::move(one));
    }
    return list;
  }
  return Unavailable("a value of type " + std::string(value.tagKind()));
}

Result<ProgramValue> ArgumentOf(const BoundOperator::Argument& argument, const c10::TypePtr& type) {
  using From = BoundOperator::Argument::Kind;
  const auto tensor = [](int32_t number) {
    return number < 0 ? ProgramValue{}
                      : ProgramValue{.kind = ValueRole::kTensor, .integer = number};
  };
  switch (argument.kind) {
    case From::kConstant: return ValueOf(argument.constant, type);
    case From::kTensor: return tensor(argument.tensor);
    case From::kStorage:
      return ProgramValue{.kind = ValueRole::kStorage, .integer = argument.tensor};
    case From::kTensors:
    case From::kOptionalTensors: {
      ProgramValue list{.kind = ValueRole::kList};
      for (const int32_t number : argument.tensors) list.items.push_back(tensor(number));
      return list;
    }
    case From::kTensorLists: {
      ProgramValue lists{.kind = ValueRole::kList};
      for (const BoundOperator::Argument& inner : argument.lists) {
        ETUDE_ASSIGN_OR_RETURN(ProgramValue list, ArgumentOf(inner, type));
        lists.items.push_back(std::move(list));
      }
      return lists;
    }
  }
  return ProgramValue{};
}

// Returns whether an argument may be written without revealing names: texts must be words of
// PyTorch's operators ("mean", "bij,bjk->bik").
bool TellsNothing(const ProgramValue& value, bool of_pytorch) {
  constexpr size_t kLongest = 64;
  if (value.kind == ValueRole::kList) {
    return std::ranges::all_of(
        value.items, [&](const ProgramValue& item) { return TellsNothing(item, of_pytorch); });
  }
  if (value.kind != ValueRole::kText) return true;
  return of_pytorch && value.text.size() <= kLongest && std::ranges::all_of(value.text, [](char c) {
           return IsPlainName({&c, 1}) ||
                  std::string_view(" ,.->").find(c) != std::string_view::npos;
         });
}

class ProgramMaker {
 public:
  ProgramMaker(const ReplayedStep& step, const std::vector<bool>& coerce, bool keep_names)
      : step_(step), trace_(step.trace()), plan_(step.plan()), coerce_(coerce) {
    if (keep_names) modules_.emplace(trace_, Launches(trace_));
  }

  Result<Program> Make() {
    program_.threads = step_.options().threads;
    program_.slots = static_cast<int32_t>(plan_.slots.size());
    works_.assign(plan_.ops.size(), kNoWork);
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      const Status added = AddCall(i);
      if (added) continue;
      return Unavailable(std::string(SchemaOf(trace_, plan_.ops[i].node)) + ": " +
                         added.error().message);
    }
    for (const OutsideStorage& outside : plan_.outside) {
      ETUDE_RETURN_IF_ERROR(AddMemory(outside));
    }
    program_.released_at_end = Slots(plan_.release_at_end);
    ShareOperators(program_);
    RenumberSlots(program_);
    return std::move(program_);
  }

 private:
  static std::vector<int32_t> Slots(const std::vector<SlotId>& slots) {
    std::vector<int32_t> numbers;
    for (const SlotId slot : slots) {
      numbers.push_back(slot ? static_cast<int32_t>(slot.index()) : kNoSlot);
    }
    return numbers;
  }

  static ProgramCall::Copy CopyOf(const Content& content) {
    return {.to = static_cast<int32_t>(content.to.index()),
            .from = static_cast<int32_t>(content.from.index())};
  }

  Result<int32_t> FormOf(SlotId slot) {
    const TensorUse& use = trace_.tensor(plan_.slots[slot.index()].tensor);
    std::optional<TensorShape> shape = ShapeOf(trace_, use);
    if (!shape || !ScalarTypeOf(trace_, use)) return Unavailable("a tensor of unknown form");
    TensorForm form{.dtype = std::string(Name(DTypeOf(trace_, use))),
                    .sizes = std::move(shape->sizes),
                    .strides = std::move(shape->strides),
                    .offset = use.offset};
    const auto [known, is_new] = forms_.emplace(
        std::tuple(form.dtype, form.sizes, form.strides, form.offset), program_.forms.size());
    if (is_new) program_.forms.push_back(std::move(form));
    return static_cast<int32_t>(known->second);
  }

  Result<int32_t> OperatorOf(const BoundOperator& bound) {
    const c10::FunctionSchema& schema = bound.schema();
    ProgramOperator op{.name = schema.name(), .overload = schema.overload_name()};
    if (!IsOperatorName(op.name) || !(op.overload.empty() || IsPlainName(op.overload))) {
      return Unavailable("a name that is not an operator");
    }
    op.returns_one_tensor = schema.returns().size() == 1 &&
                            schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const CollectiveRole role = bound.communicates() ? RoleOf(argument) : CollectiveRole::kNone;
      auto value = role == CollectiveRole::kNone
                       ? ArgumentOf(bound.arguments()[i], argument.real_type())
                       : CommunicationArgument(role, bound, bound.arguments()[i].constant);
      if (!value)
        return Unavailable("argument '" + argument.name() + "': " + value.error().message);
      if (!modules_ && !TellsNothing(*value, IsOfPyTorch(op.name))) {
        return Unavailable("argument '" + argument.name() +
                           "' is a string; use --keep-names to include it");
      }
      op.arguments.push_back(
          {.name = argument.name(), .by_name = argument.kwarg_only(), .value = *std::move(value)});
    }
    // Few operators have many constants, so a linear search by name is enough.
    std::vector<int32_t>& alike = operators_[op.name];
    for (const int32_t number : alike) {
      if (program_.operators[static_cast<size_t>(number)] == op) return number;
    }
    alike.push_back(static_cast<int32_t>(program_.operators.size()));
    program_.operators.push_back(std::move(op));
    return alike.back();
  }

  // Returns a process group, its name, or a reduction.
  Result<ProgramValue> CommunicationArgument(CollectiveRole role, const BoundOperator& bound,
                                             const c10::IValue& value) {
    if (role == CollectiveRole::kReduction) {
      const std::string text = ReductionText(NumberOfReduction(value));
      return ProgramValue{.kind = ValueRole::kReduction,
                          .text = std::string(*ReductionNameIn(text))};
    }
    return ProgramValue{.kind = value.isString() ? ValueRole::kGroupName : ValueRole::kGroup,
                        .integer = GroupOf(bound.channel().group)};
  }

  int32_t GroupOf(const std::string& name) {
    ProgramGroup group{.name = name, .ranks = step_.options().group->RanksOf(name)};
    const auto known = std::ranges::find(program_.groups, group);
    const auto number = static_cast<int32_t>(known - program_.groups.begin());
    if (known == program_.groups.end()) program_.groups.push_back(std::move(group));
    return number;
  }

  // Returns the calling module, if it may be named.
  int32_t LabelOf(NodeId node) {
    if (!modules_ || modules_->name(node) == kNoModule) return -1;
    const std::string name(modules_->name(node));
    const auto [known, is_new] =
        labels_.emplace(name, static_cast<int32_t>(program_.labels.size()));
    if (is_new) program_.labels.push_back(name);
    return known->second;
  }

  // Members of a batch are waited for after it.
  void AddBatch(const BoundOperator& bound, size_t index, ProgramCall& call) {
    const CommBatch* batch = BatchOf(step_.runner().batches(), index);
    if (batch == nullptr) return;
    call.finishes = false;
    const int32_t group = GroupOf(bound.channel().group);
    if (index == batch->first) call.batch_begins = group;
    if (index == batch->last) call.batch_ends = group;
  }

  Status AddCall(size_t index) {
    const PlannedOp& planned = plan_.ops[index];
    const BoundOperator& bound = step_.bound(planned.node);
    ProgramCall call;
    ETUDE_ASSIGN_OR_RETURN(call.op, OperatorOf(bound));
    call.label = LabelOf(planned.node);
    for (const uint32_t communication : step_.runner().waits()[index]) {
      const int32_t work = works_[communication];
      if (work != kNoWork) call.awaited.push_back(work);
    }
    call.finishes =
        bound.returns_work() && step_.runner().IsAwaitedAtOnce(static_cast<uint32_t>(index));
    AddBatch(bound, index, call);
    if (bound.returns_work() && !call.finishes) call.work = works_[index] = program_.works++;
    call.clear = Slots(planned.release_before);
    for (const SlotId slot : planned.derive) {
      ETUDE_ASSIGN_OR_RETURN(const int32_t form, FormOf(slot));
      const SlotId base = plan_.slots[slot.index()].base;
      call.views.push_back({.slot = static_cast<int32_t>(slot.index()),
                            .base = static_cast<int32_t>(base.index()),
                            .form = form});
    }
    for (const Content& content : planned.given) call.given.push_back(CopyOf(content));
    call.inputs = Slots(planned.inputs);
    call.results = Slots(planned.results);
    if (coerce_[index]) {
      for (const SlotId slot : planned.results) {
        int32_t form = -1;
        if (slot) {
          ETUDE_ASSIGN_OR_RETURN(form, FormOf(slot));
        }
        call.fits.push_back(form);
      }
    }
    for (const Content& content : planned.content) call.content.push_back(CopyOf(content));
    call.released = Slots(planned.release);
    program_.calls.push_back(std::move(call));
    return {};
  }

  Status AddMemory(const OutsideStorage& outside) {
    ProgramMemory memory{.bytes = outside.bytes,
                         .restored = step_.memory().is_restored(outside.version),
                         .state = outside.made_in_first_step};
    for (const SlotId slot : outside.slots) {
      const TensorUse& use = trace_.tensor(plan_.slots[slot.index()].tensor);
      const auto number = static_cast<int32_t>(slot.index());
      if (use.number_kind != ValueKind::kNone) {
        program_.numbers.push_back({.slot = number, .value = NumberOf(use)});
        continue;
      }
      ETUDE_ASSIGN_OR_RETURN(const int32_t form, FormOf(slot));
      memory.tensors.push_back({.slot = number, .form = form});
    }
    if (memory.tensors.empty()) return {};
    DescribeFill(outside, memory);
    program_.memory.push_back(std::move(memory));
    return {};
  }

  static ProgramValue NumberOf(const TensorUse& use) {
    if (use.number_kind == ValueKind::kBool) {
      return {.kind = ValueRole::kBool, .integer = use.number != 0 ? 1 : 0};
    }
    if (use.number_kind == ValueKind::kInt) {
      return {.kind = ValueRole::kInt, .integer = static_cast<int64_t>(use.number)};
    }
    return {.kind = ValueRole::kDouble, .real = std::bit_cast<double>(use.number)};
  }

  // Same fill as OutsideMemory, except for recorded elements, which belong to the program.
  void DescribeFill(const OutsideStorage& outside, ProgramMemory& memory) const {
    const TensorForm& form = program_.forms[static_cast<size_t>(memory.tensors.front().form)];
    const auto slot = static_cast<size_t>(memory.tensors.front().slot);
    const c10::ScalarType type = *ScalarTypeOf(trace_, trace_.tensor(plan_.slots[slot].tensor));
    memory.dtype = form.dtype;
    memory.fill = FillBy(step_.rule(outside.version), FilledElementOf(type),
                         memory.bytes / static_cast<int64_t>(c10::elementSize(type)), form.sizes);
  }

  const ReplayedStep& step_;
  const Trace& trace_;
  const ReplayPlan& plan_;
  const std::vector<bool>& coerce_;
  Program program_;
  std::map<std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>, int64_t>, size_t>
      forms_;
  std::map<std::string, std::vector<int32_t>> operators_;  // by name
  std::optional<Modules> modules_;                         // set if names are kept
  std::map<std::string, int32_t> labels_;
  std::vector<int32_t> works_;  // by operator of the plan
};

}  // namespace

Result<Program> MakeProgram(const ReplayedStep& step, const std::vector<bool>& coerce,
                            bool keep_names) {
  return ProgramMaker(step, coerce, keep_names).Make();
}

}  // namespace etude
