#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/standalone/memory_fill.h"

namespace etude {

// A benchmark that stands alone: the operators of a step with their arguments, the memory that they
// work on and how long tensors live, in terms of PyTorch only. Whatever writes a program of it adds
// nothing and needs nothing else. Tensors are held in slots, numbered from 0.

// An argument of an operator.
struct ProgramValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,          // integer: 0 or 1
    kInt,           // integer
    kDouble,        // real
    kComplex,       // real, imaginary
    kText,          // text
    kDType,         // text: torch's name, "float32"
    kLayout,        // text: torch's name, "strided"
    kMemoryFormat,  // text: torch's name, "channels_last"
    kDevice,        // the one that the benchmark runs on
    kTensor,        // integer: which of the call's inputs
    kStorage,       // integer: of which of the call's inputs
    kGroup,         // integer: which of Program::groups
    kGroupName,     // integer: of which of Program::groups
    kReduction,     // text: c10d's name, "SUM"
    kNumber,        // integer: which of the call's numbers
    kList,          // items
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  double imaginary = 0;
  std::string text;
  std::vector<ProgramValue> items;

  friend bool operator==(const ProgramValue&, const ProgramValue&) = default;
};

// An operator with what its calls have in common.
struct ProgramOperator {
  struct Argument {
    std::string name;
    bool by_name = false;  // Python takes it as a keyword only
    ProgramValue value;

    friend bool operator==(const Argument&, const Argument&) = default;
  };
  std::string name;  // "aten::addmm"
  std::string overload;
  std::vector<Argument> arguments;
  bool returns_one_tensor = false;  // and nothing else

  friend bool operator==(const ProgramOperator&, const ProgramOperator&) = default;
};

// How a tensor lies in its memory, in elements.
struct TensorForm {
  std::string dtype;  // torch's name
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

// No slot: an undefined tensor as an input, a result that nobody reads.
inline constexpr int32_t kNoSlot = -1;
// No communication that goes on while other calls are made.
inline constexpr int32_t kNoWork = -1;
// No process group.
inline constexpr int32_t kNoGroup = -1;

struct ProgramCall {
  struct View {
    int32_t slot = 0;
    int32_t base = 0;  // the slot whose memory it shares
    int32_t form = 0;  // of Program::forms
  };
  struct Copy {
    int32_t to = 0;
    int32_t from = 0;
  };
  int32_t op = 0;                // of Program::operators
  int32_t label = -1;            // of Program::labels: the module that calls, if it may be said
  std::vector<int32_t> awaited;  // communications that are waited for before
  std::vector<int32_t> clear;    // slots emptied before
  std::vector<View> views;       // made before the call, in order
  std::vector<Copy> given;       // bytes copied right before the call, past the dispatcher
  std::vector<int32_t> inputs;   // slots
  std::vector<int32_t>
      numbers;  // whole numbers among the operator's arguments that calls differ in
  std::vector<int32_t> results;   // slots, or kNoSlot
  std::vector<int32_t> fits;      // per result: the form it is brought to, -1 for none; or empty
  std::vector<Copy> content;      // bytes copied after the call, past the dispatcher
  std::vector<int32_t> released;  // slots emptied after
  // Of a communication: the number that it is waited for by, else whether it is waited for at once.
  // Those that are going on at the end of the step are waited for then.
  int32_t work = kNoWork;
  bool finishes = false;
  // Of Program::groups, the one which is given a batch of sends and receives, at its first and at
  // its last (replay/comm_batches.h).
  int32_t batch_begins = kNoGroup;
  int32_t batch_ends = kNoGroup;
};

// Memory that is there before the step.
struct ProgramMemory {
  struct Tensor {
    int32_t slot = 0;
    int32_t form = 0;
  };
  int64_t bytes = 0;
  std::string dtype;  // of the elements that are filled
  MemoryFill fill;
  bool restored = false;  // the step changes it: it is set back before each
  bool state = false;     // a program makes it in its first step: an optimizer's state
  std::vector<Tensor> tensors;
};

// A Python number that PyTorch made a tensor of, which promotes types as a number does.
struct ProgramNumber {
  int32_t slot = 0;
  ProgramValue value;
};

// How the C library's heap behaves when the step has run often, which decides how many page faults
// a step has (see torch/program_heap.h).
struct ProgramHeap {
  int64_t map_threshold = 0;  // bytes from which on blocks are mapped; 0: not known
  bool keeps_freed = false;   // nothing is given back to the system, but
  int64_t given_back = 0;     // so many bytes of the tensors that a step frees
};

// What passed in the recorded program between two operators, recording left out: `busy` time of the
// processor, `idle` time in which the program waited, first.
struct ProgramGap {
  Nanos idle;
  Nanos busy;
};

// A process group as one of its ranks sees it.
struct ProgramGroup {
  std::string name;            // which tells groups of the same ranks apart; not written anywhere
  std::vector<int64_t> ranks;  // of the job

  friend auto operator<=>(const ProgramGroup&, const ProgramGroup&) = default;
};

// Of one rank, if there are several.
struct Program {
  std::vector<ProgramOperator> operators;
  std::vector<TensorForm> forms;
  std::vector<ProgramCall> calls;
  std::vector<ProgramMemory> memory;
  std::vector<ProgramNumber> numbers;
  std::vector<int32_t> released_at_end;
  // Before each call, and one more after the last; empty: unknown.
  std::vector<ProgramGap> gaps;
  std::vector<std::string> labels;
  std::vector<ProgramGroup> groups;  // in the order of their first use
  int32_t slots = 0;
  int32_t works = 0;
  int64_t threads = 1;
  ProgramHeap heap;
};

// Operators that are many and alike but for whole numbers, as those that take one step of a
// sequence after the other, become one: its calls hold the numbers. Operators are then numbered in
// the order of their first call.
void ShareOperators(Program& program);

// Numbers slots in the order of their first use in the step, so that repeated work uses slots at a
// fixed distance, and equal ranks the same: what fills a slot that was emptied has a number of its
// own, and numbers of one value have one. Slots that the step does not use come last.
void RenumberSlots(Program& program);

// A part of a program: calls `first`, `first` + 1, … or, if `repeats` > 1, a loop around `body`,
// whose calls are those of its first round; each round has `period` calls.
struct ProgramBlock {
  uint32_t first = 0;
  uint32_t period = 1;
  uint32_t repeats = 1;
  std::vector<ProgramBlock> body;  // empty: the one call `first`
};

// The calls of the program as loops: rounds of a loop make the same calls on other slots. Greedy:
// the repetition that saves most lines first, then what is left of it and inside of it.
std::vector<ProgramBlock> FindLoops(const Program& program);

}  // namespace etude
