#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/standalone/memory_fill.h"

namespace etude {

// A standalone benchmark: the operators of a step with their arguments, memory and tensor
// lifetimes, in terms of PyTorch only. It is complete: code generators add nothing and need nothing
// else. Tensors are in slots, numbered from 0.

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
    kDevice,        // the benchmark's device
    kTensor,        // integer: index among the call's inputs
    kStorage,       // integer: index among the call's inputs
    kGroup,         // integer: index in Program::groups
    kGroupName,     // integer: index in Program::groups
    kReduction,     // text: c10d's name, "SUM"
    kNumber,        // integer: index among the call's numbers
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

// An operator, with the arguments that its calls share.
struct ProgramOperator {
  struct Argument {
    std::string name;
    bool by_name = false;  // keyword-only in Python
    ProgramValue value;

    friend bool operator==(const Argument&, const Argument&) = default;
  };
  std::string name;  // "aten::addmm"
  std::string overload;
  std::vector<Argument> arguments;
  bool returns_one_tensor = false;  // and no other result

  friend bool operator==(const ProgramOperator&, const ProgramOperator&) = default;
};

// Layout of a tensor in its memory, in elements.
struct TensorForm {
  std::string dtype;  // torch's name
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

// No slot: an undefined input, or an unused result.
inline constexpr int32_t kNoSlot = -1;
// No background communication.
inline constexpr int32_t kNoWork = -1;
// No process group.
inline constexpr int32_t kNoGroup = -1;

struct ProgramCall {
  struct View {
    int32_t slot = 0;
    int32_t base = 0;  // slot whose memory it shares
    int32_t form = 0;  // index in Program::forms
  };
  struct Copy {
    int32_t to = 0;
    int32_t from = 0;
  };
  int32_t op = 0;                // index in Program::operators
  int32_t label = -1;            // index in Program::labels: the calling module, if it may be named
  std::vector<int32_t> awaited;  // communications to wait for before the call
  std::vector<int32_t> clear;    // slots to empty before the call
  std::vector<View> views;       // made before the call, in order
  std::vector<Copy> given;  // bytes copied immediately before the call, bypassing the dispatcher
  std::vector<int32_t> inputs;  // slots
  std::vector<int32_t>
      numbers;  // whole numbers among the operator's arguments that calls differ in
  std::vector<int32_t> results;   // slots, or kNoSlot
  std::vector<int32_t> fits;      // per result: form to convert it to, -1 for none; may be empty
  std::vector<Copy> content;      // bytes copied after the call, bypassing the dispatcher
  std::vector<int32_t> released;  // slots to empty after the call
  // For a communication: its work number; without one, whether the call waits for it. Unfinished
  // works are waited for at the end of the step.
  int32_t work = kNoWork;
  bool finishes = false;
  // Group in Program::groups whose batch of sends and receives begins or ends with this call
  // (replay/comm_batches.h).
  int32_t batch_begins = kNoGroup;
  int32_t batch_ends = kNoGroup;
};

// Memory that exists before the step.
struct ProgramMemory {
  struct Tensor {
    int32_t slot = 0;
    int32_t form = 0;
  };
  int64_t bytes = 0;
  std::string dtype;  // of the filled elements
  MemoryFill fill;
  bool restored = false;  // changed by the step and therefore reset before each step
  bool state = false;     // made by the program in its first step, such as an optimizer's state
  std::vector<Tensor> tensors;
};

// A Python number that PyTorch converted to a tensor. It promotes types like a number.
struct ProgramNumber {
  int32_t slot = 0;
  ProgramValue value;
};

// Steady-state behaviour of the C library's heap, which determines the page faults of a step (see
// torch/program_heap.h).
struct ProgramHeap {
  int64_t map_threshold = 0;  // blocks of at least this many bytes are mapped; 0: unknown
  bool keeps_freed = false;   // freed memory is not returned to the system, except
  int64_t given_back = 0;     // this many bytes of the tensors that a step frees
};

// Time between two operators in the recorded program, without recording overhead: first `idle`
// time, in which the program waited, then `busy` time of the processor.
struct ProgramGap {
  Nanos idle;
  Nanos busy;
};

// A process group from the view of one rank.
struct ProgramGroup {
  std::string name;            // distinguishes groups of the same ranks; not written to any file
  std::vector<int64_t> ranks;  // of the job

  friend auto operator<=>(const ProgramGroup&, const ProgramGroup&) = default;
};

// Part of the recorded step that a program runs.
struct ProgramCoverage {
  int64_t operators = 0;  // of the recorded step
  int64_t operators_run = 0;
  std::optional<double> time;  // share of the recorded time; nullopt: unknown
};

// Program of one rank.
struct Program {
  std::vector<ProgramOperator> operators;
  std::vector<TensorForm> forms;
  std::vector<ProgramCall> calls;
  std::vector<ProgramMemory> memory;
  std::vector<ProgramNumber> numbers;
  std::vector<int32_t> released_at_end;
  // Before each call, and one after the last; empty: unknown.
  std::vector<ProgramGap> gaps;
  std::vector<std::string> labels;
  std::vector<ProgramGroup> groups;  // in order of first use
  int32_t slots = 0;
  int32_t works = 0;
  int64_t threads = 1;
  ProgramHeap heap;
  ProgramCoverage coverage;
};

// Merges operators that differ only in integers, such as those that process the steps of a
// sequence; their calls then hold the numbers. Renumbers operators by their first call.
void ShareOperators(Program& program);

// Renumbers slots by first use in the step, so that repeated work uses slots at a fixed distance
// and equal ranks use equal slots. A value that fills an emptied slot gets a new number; equal
// Python numbers share one. Slots that the step does not use come last.
void RenumberSlots(Program& program);

// A part of a program: the calls from `first`; if `repeats` > 1, a loop around `body`, which
// contains the calls of the first round. Each round has `period` calls.
struct ProgramBlock {
  uint32_t first = 0;
  uint32_t period = 1;
  uint32_t repeats = 1;
  std::vector<ProgramBlock> body;  // empty: the single call `first`
};

// Returns the program's calls as loops, whose rounds make the same calls on other slots. Greedy:
// takes the repetition that saves most lines first, then continues with the rest and inside the
// loop.
std::vector<ProgramBlock> FindLoops(const Program& program);

}  // namespace etude
