// Building blocks of a step's code (step.cc): operators with their fixed arguments, called on
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

// libtorch's headers take seconds to compile. Only main.cc and ranks.cc include them, before this
// header.
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
struct Tensor {  // index among the call's inputs
  int input;
};
struct Storage {  // the memory of that input
  int input;
};
struct Group {  // number among this rank's process groups
  int number;
};
struct GroupName {
  int number;
};
struct Reduction {
  const char* name;
};
struct Number {  // index among the call's numbers
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

// An argument, as written in the code.
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
// Makes a list. Clang before 20 parses List{List{0}} as the inner list.
inline List ListOf(std::initializer_list<Argument> items) { return items; }

// An operator of PyTorch or of a library loaded by --library. An unknown operator ends the program
// with an error.
class Op {
 public:
  Op(const char* name, const char* overload, std::initializer_list<Argument> arguments);
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op();

  // Calls the operator on the tensors in the slots `inputs` (-1: undefined) and stores its results
  // in `results` (-1: discarded). `numbers`: arguments that differ between its calls.
  void operator()(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                  std::initializer_list<int> numbers = {}) const;
  // Variants for communications: Finish waits for the result. Begin continues in the background
  // until Await(work), at the latest until the end of the step.
  void Finish(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
              std::initializer_list<int> numbers = {}) const;
  void Begin(int work, Slots& t, std::initializer_list<int> inputs,
             std::initializer_list<int> results, std::initializer_list<int> numbers = {}) const;

  // Looks up all operators of the step.
  static void FindAll();

 private:
  struct Prepared;
  void Find();
  // Returns the work handle of a communication.
  c10::IValue Run(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                  std::initializer_list<int> numbers) const;

  const char* name_;
  const char* overload_;
  std::vector<Argument> written_;
  std::unique_ptr<Prepared> prepared_;
};

void Await(int work);
// Allow the group to run the sends and receives in between as one batch.
void BeginBatch(int group);
void EndBatch(int group);

void Clear(Slots& t, std::initializer_list<int> slots);
// Clears the slots from `begin` up to, but excluding, `end`.
void ClearRange(Slots& t, int begin, int end);
// Makes a tensor of this form on the memory of another one.
void View(Slots& t, int slot, int base, int form);
// Converts a tensor to the type and sizes of the form.
void Fit(Slots& t, int slot, int form);
void CopyBytes(Slots& t, int to, int from);
// Returns an entry of a table, for numbers that follow no formula.
int Table(int table, int index);

// Registers a step from a file of the benchmark: step.cc, or one file for all ranks that do the
// same.
struct StepCode {
  StepCode(int number, void (*step)(Slots&));
};

[[noreturn]] void Fail(const std::string& why);
