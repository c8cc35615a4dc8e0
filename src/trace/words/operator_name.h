#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

// What PyTorch's names and schemas say.
namespace etude {

// "aten::add_.Tensor" of "aten::add_.Tensor(Tensor(a!) self, …) -> …".
inline std::string_view FullOperatorName(std::string_view schema) {
  schema = schema.substr(0, schema.find('('));
  while (!schema.empty() && schema.back() == ' ') schema.remove_suffix(1);
  while (!schema.empty() && schema.front() == ' ') schema.remove_prefix(1);
  return schema;
}

// The same without the overload: "aten::add_".
inline std::string_view BaseOperatorName(std::string_view schema) {
  const std::string_view name = FullOperatorName(schema);
  return name.substr(0, name.find('.'));
}

// An argument or a result of an operator, as its schema declares it.
struct DeclaredValue {
  std::string_view type;  // "Tensor", "Tensor(a!)", "ScalarType?"
  std::string_view name;  // "" where it has none
};

struct OperatorSignature {
  std::vector<DeclaredValue> arguments;
  std::vector<DeclaredValue> results;  // where they stand in brackets
};

// Of a schema "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor
// indices)".
OperatorSignature SignatureOf(std::string_view schema);

// The position of argument `name` in "c10d::send(Tensor[] tensors, int dst, int tag=0) -> …".
std::optional<size_t> ArgumentPosition(std::string_view schema, std::string_view name);

// What follows the backend in the name of a communication's label ("gloo:all_reduce"), if it
// speaks of a collective or of point to point; else "".
std::string_view CommOfLabel(std::string_view name);

// Whether a name is that of a label around what a backend does for communications, also for several
// at once ("nccl:coalesced").
bool IsCommLabel(std::string_view name);

// Whether it is the label in which the calls before it go out together ("nccl:coalesced").
bool IsCoalescedLabel(std::string_view name);

// The label that recordings put where a program waits for what Gloo does
// (python/etude/recording/wait_labels.py has the same).
inline constexpr std::string_view kWaitLabel = "torch.distributed.Work.wait";

// Whether a name is that of an operator of c10d's, by which programs ask for communication.
inline bool IsC10dOperator(std::string_view name) { return name.starts_with("c10d::"); }

// Whether an operator's full name is that of a communication, or of the wait for one: those of
// c10d, "_c10d_functional::wait_tensor" and others of functional collectives.
inline bool IsCommOperator(std::string_view name) {
  return IsC10dOperator(name) || name.starts_with("_c10d_functional::") ||
         name.starts_with("c10d_functional::");
}

// What autograd's engine calls stands in a label of this beginning, inside of which is that of the
// called node itself, with the rest of the name: "autograd::engine::evaluate_function:
// MulBackward0" and "MulBackward0". Both have hooks in them, which may wait.
inline constexpr std::string_view kAutogradCall = "autograd::engine::evaluate_function: ";
// Whether `name`, right inside of `caller`, is that of the node that the engine calls there.
inline bool IsAutogradNode(std::string_view name, std::string_view caller) {
  return caller.starts_with(kAutogradCall) && caller.substr(kAutogradCall.size()) == name;
}

// Whether an operator's name is in a namespace of PyTorch's own, whose operators say nothing of the
// program by their names, nor by texts among their arguments. Others are of libraries, as those
// that a program brings with it.
bool IsOfPyTorch(std::string_view name);

// "ProfilerStep#3": the profiler's mark of a training or inference step.
inline constexpr std::string_view kStepMark = "ProfilerStep#";
inline bool IsStepMark(std::string_view name) { return name.starts_with(kStepMark); }

}  // namespace etude
