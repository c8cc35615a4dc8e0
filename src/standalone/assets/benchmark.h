// What the code of the step (step.cc) is made of: operators with their fixed arguments, called on
// tensors in slots.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// libtorch's headers take seconds to compile: main.cc and ranks.cc include them, before this one.
namespace at {
class Tensor;
}
namespace c10 {
struct IValue;
}

using Slots = std::vector<at::Tensor>;

struct None {};
struct Complex {
  double real;
  double imaginary;
};
struct Tensor {  // the call's input of this number
  int input;
};
struct Storage {  // its memory
  int input;
};
struct Group {  // of the process groups that this rank is in, one
  int number;
};
struct GroupName {
  int number;
};
struct Reduction {
  const char* name;
};
struct Number {  // the call's number of this number
  int number;
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
  std::variant<None, bool, int64_t, double, Complex, std::string, Tensor, Storage, Group, GroupName,
               Reduction, Number, RunDevice, DType, Layout, MemoryFormat, List>
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
// A list as it stands in the code. Clang before 20 takes List{List{0}} for the inner list.
inline List ListOf(std::initializer_list<Argument> items) { return items; }

// An operator of PyTorch's or of a library that --library loads. One that is not found ends the
// program, which says so.
class Op {
 public:
  Op(const char* name, const char* overload, std::initializer_list<Argument> arguments);
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op();

  // Calls it on the tensors in `inputs` (-1: an undefined one) and keeps its results in `results`
  // (-1: not kept). `numbers`: those among its arguments in which its calls differ.
  void operator()(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                  std::initializer_list<int> numbers = {}) const;
  // The same of a communication: one that is waited for at once, and one that goes on until
  // Await(work), at most until the end of the step.
  void Finish(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
              std::initializer_list<int> numbers = {}) const;
  void Begin(int work, Slots& t, std::initializer_list<int> inputs,
             std::initializer_list<int> results, std::initializer_list<int> numbers = {}) const;

  // Finds all operators that there are.
  static void FindAll();

 private:
  struct Prepared;
  void Find();
  // Returns what a communication is waited for by, if it is one.
  c10::IValue Run(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                  std::initializer_list<int> numbers) const;

  const char* name_;
  const char* overload_;
  std::vector<Argument> written_;
  std::unique_ptr<Prepared> prepared_;
};

void Await(int work);
// Sends and receives of the group that are begun in between may be given to it as one.
void BeginBatch(int group);
void EndBatch(int group);

void Clear(Slots& t, std::initializer_list<int> slots);
// Those from `begin` to before `end`.
void ClearRange(Slots& t, int begin, int end);
// Makes a tensor of this form on the memory of another.
void View(Slots& t, int slot, int base, int form);
// Brings a tensor to this type and these sizes.
void Fit(Slots& t, int slot, int form);
void CopyBytes(Slots& t, int to, int from);
// A number that follows no formula.
int Table(int table, int index);

// A step, as a file of the benchmark has it: step.cc, or one file for all ranks that do the same.
struct StepCode {
  StepCode(int number, void (*step)(Slots&));
};

[[noreturn]] void Fail(const std::string& why);
