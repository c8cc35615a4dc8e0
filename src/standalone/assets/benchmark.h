// What the code of the step (step.cc) is made of: operators with their fixed arguments, called on
// tensors in slots.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

using Slots = std::vector<at::Tensor>;

struct None {};
struct Tensor {  // the call's input of this number
  int input;
};
struct Storage {  // its memory
  int input;
};
struct RunDevice {};
struct DType {
  const char* name;
};
struct Layout {
  const char* name;
};
struct MemoryFormat {
  const char* name;
};

// An argument, as it stands in the code.
struct Argument {
  using List = std::vector<Argument>;
  std::variant<None, bool, int64_t, double, std::string, Tensor, Storage, RunDevice, DType, Layout,
               MemoryFormat, List>
      value;

  Argument(bool one) : value(one) {}
  Argument(int one) : value(int64_t{one}) {}
  Argument(int64_t one) : value(one) {}
  Argument(double one) : value(one) {}
  Argument(const char* one) : value(std::string(one)) {}
  template <typename Kind>
  Argument(Kind one) : value(std::move(one)) {}
};
using List = Argument::List;

// An operator of PyTorch's. Not found: the program ends and says which.
class Op {
 public:
  Op(const char* name, const char* overload, std::initializer_list<Argument> arguments);

  // Calls it on the tensors in `inputs` (-1: an undefined one) and keeps its results in `results`
  // (-1: not kept).
  void operator()(Slots& t, std::initializer_list<int> inputs,
                  std::initializer_list<int> results) const;

 private:
  // An argument ready to be pushed, or the tensors that it is made of.
  struct Ready {
    enum class Kind { kConstant, kTensor, kStorage, kTensors, kOptionalTensors };
    Kind kind = Kind::kConstant;
    c10::IValue constant;
    std::vector<int> inputs;  // -1: none
  };
  static Ready Prepare(const Argument& argument, const c10::TypePtr& type);

  c10::OperatorHandle handle_;
  std::vector<Ready> arguments_;
};

void Clear(Slots& t, std::initializer_list<int> slots);
// Those from `begin` to before `end`.
void ClearRange(Slots& t, int begin, int end);
// Makes a tensor of this form on the memory of another.
void View(Slots& t, int slot, int base, int form);
// Brings a tensor to this type and these sizes.
void Fit(Slots& t, int slot, int form);
void CopyBytes(Slots& t, int to, int from);
// A number of a slot or a form that follows no formula.
int Table(int table, int index);

// One step; in step.cc.
void Step(Slots& t);
