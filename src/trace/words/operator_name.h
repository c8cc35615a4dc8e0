#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

// Parsing of PyTorch's names and schemas.
namespace etude {

// Returns "aten::add_.Tensor" for "aten::add_.Tensor(Tensor(a!) self, …) -> …".
inline std::string_view FullOperatorName(std::string_view schema) {
  schema = schema.substr(0, schema.find('('));
  while (!schema.empty() && schema.back() == ' ') schema.remove_suffix(1);
  while (!schema.empty() && schema.front() == ' ') schema.remove_prefix(1);
  return schema;
}

// Returns the name without the overload: "aten::add_".
inline std::string_view BaseOperatorName(std::string_view schema) {
  const std::string_view name = FullOperatorName(schema);
  return name.substr(0, name.find('.'));
}

// Argument or result of an operator, as declared in its schema.
struct DeclaredValue {
  std::string_view type;  // "Tensor", "Tensor(a!)", "ScalarType?"
  std::string_view name;  // "" if it has none
};

struct OperatorSignature {
  std::vector<DeclaredValue> arguments;
  std::vector<DeclaredValue> results;  // if they are in brackets
};

// Parses a schema such as "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor
// values, Tensor indices)".
OperatorSignature SignatureOf(std::string_view schema);

// Returns the position of argument `name` in "c10d::send(Tensor[] tensors, int dst, int tag=0) ->
// …".
std::optional<size_t> ArgumentPosition(std::string_view schema, std::string_view name);

// Returns the part after the backend in the name of a communication's label ("gloo:all_reduce"), if
// it names a collective or a point-to-point operation; else "".
std::string_view CommOfLabel(std::string_view name);

// Returns true for names of labels around a backend's communications, including several at once
// ("nccl:coalesced").
bool IsCommLabel(std::string_view name);

// Returns true for the label that launches the preceding calls together ("nccl:coalesced").
bool IsCoalescedLabel(std::string_view name);

// Label that recordings add where a program waits for Gloo (also in
// python/etude/recording/wait_labels.py).
inline constexpr std::string_view kWaitLabel = "torch.distributed.Work.wait";

// Returns true for names of c10d operators, which programs call to communicate.
inline bool IsC10dOperator(std::string_view name) { return name.starts_with("c10d::"); }

// Returns true for full names of operators that communicate or wait for communication: those of
// c10d, "_c10d_functional::wait_tensor" and other functional collectives.
inline bool IsCommOperator(std::string_view name) {
  return IsC10dOperator(name) || name.starts_with("_c10d_functional::") ||
         name.starts_with("c10d_functional::");
}

// Returns true for names of nodes in which a program waits for Gloo: recordings' own label, and the
// wait for functional collectives.
inline bool WaitsForCommunication(std::string_view name) {
  return name == kWaitLabel || name == "_c10d_functional::wait_tensor" ||
         name == "c10d_functional::wait_tensor";
}

// Prefix of labels around calls by autograd's engine. The label contains that of the called node,
// whose name is the rest: "autograd::engine::evaluate_function: MulBackward0" and "MulBackward0".
// Both include hooks, which may wait.
inline constexpr std::string_view kAutogradCall = "autograd::engine::evaluate_function: ";
// Returns true if `name`, directly inside `caller`, is that of the node called there by the engine.
inline bool IsAutogradNode(std::string_view name, std::string_view caller) {
  return caller.starts_with(kAutogradCall) && caller.substr(kAutogradCall.size()) == name;
}

// Returns true for operators in PyTorch's own namespaces, whose names and text arguments reveal
// nothing of the program. Others belong to libraries, including the program's own.
bool IsOfPyTorch(std::string_view name);

// "ProfilerStep#3": mark of a training or inference step by the profiler.
inline constexpr std::string_view kStepMark = "ProfilerStep#";
inline bool IsStepMark(std::string_view name) { return name.starts_with(kStepMark); }

}  // namespace etude
