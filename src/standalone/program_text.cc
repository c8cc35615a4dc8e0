#include "src/standalone/program_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/printable.h"
#include "src/base/text/utf8.h"

namespace etude {
namespace {

constexpr std::string_view kVariables = "ijklmnopqr";
// Maximum of calls per generated function.
constexpr uint32_t kFunctionLines = 300;

struct Loop {
  char variable;
  uint32_t repeats;
  uint32_t period;
};

// Numbers of a call as text: literals, or formulas of loop variables.
struct CallText {
  struct View {
    std::string slot;
    std::string base;
    std::string form;
  };
  struct Copy {
    std::string to;
    std::string from;
  };
  std::vector<std::string> awaited;
  std::vector<std::string> clear;
  std::vector<View> views;
  std::vector<Copy> given;
  std::vector<std::string> inputs;
  std::vector<std::string> numbers;
  std::vector<std::string> results;
  std::vector<std::string> fits;  // forms, parallel to results; or empty
  std::vector<Copy> content;
  std::vector<std::string> released;
  std::string work;
};

// Returns a name that is safe in a comment.
std::string OneLine(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\'; },
      '?');
  return Printable(name);  // marks of writing direction would show misleading code
}

// Writes the step in one language. The base class contains the common parts: the order of
// statements, loops, and slot numbers as functions of the loop variables.
class StepWriter {
 public:
  StepWriter(const Program& program, size_t indent) : program_(program), indent_(indent) {}
  virtual ~StepWriter() = default;

  StepText Write() {
    Declare();
    const std::vector<ProgramBlock> blocks = FindLoops(program_);
    size_t next = 0;
    for (int part = 1; next < blocks.size(); ++part) {
      OpenFunction(part);
      const uint32_t begin = calls_;
      while (next < blocks.size() && calls_ - begin < kFunctionLines) {
        Write(blocks[next++]);
      }
      CloseFunction();
      parts_ = part;
    }
    WriteStep();
    std::string text = Head();
    if (!declarations_.empty()) text += declarations_ + "\n";
    text += functions_;
    return {.text = std::move(text), .tables = std::move(tables_), .calls = calls_};
  }

 protected:
  virtual void Declare() {}
  virtual void OpenFunction(int part) = 0;
  virtual void CloseFunction() = 0;
  virtual void OpenLoop(const Loop& loop) = 0;
  virtual void CloseLoop() = 0;
  virtual void WriteCall(const ProgramCall& call, const CallText& text) = 0;
  virtual void Comment(std::string_view words) = 0;
  virtual void WriteStep() = 0;
  virtual std::string Head() const = 0;
  virtual std::string Table(size_t number, std::string_view index) const = 0;

  void Line(std::string_view line) {
    functions_.append(depth_ * indent_, ' ');
    functions_ += line;
    functions_ += '\n';
  }

  const Program& program_;
  std::string declarations_;
  std::string functions_;
  std::vector<std::vector<int32_t>> tables_;  // numbers that follow no formula
  uint32_t calls_ = 0;
  std::vector<Loop> loops_;
  size_t indent_;  // blanks per level
  size_t depth_ = 0;
  int parts_ = 0;

 private:
  using Operand = std::function<int32_t(const ProgramCall&)>;

  // Returns the number that `get` reads from the call at `index`, as a function of the surrounding
  // loops.
  std::string Number(uint32_t index, const Operand& get) {
    const int32_t first = get(program_.calls[index]);
    std::vector<int64_t> steps;
    for (const Loop& loop : loops_) {
      steps.push_back(loop.repeats < 2 ? 0
                                       : int64_t{get(program_.calls[index + loop.period])} - first);
    }
    std::vector<int32_t> all;
    bool is_linear = true;
    ForEachRound(index, 0, first, steps, [&](uint32_t at, int64_t expected) {
      all.push_back(get(program_.calls[at]));
      is_linear = is_linear && all.back() == expected;
    });
    if (!is_linear) return Lookup(std::move(all));
    std::string text;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (steps[i] == 0) continue;
      const std::string_view sign = steps[i] < 0 ? " - " : " + ";
      text += fmt::format("{}{}{}", sign,
                          std::abs(steps[i]) == 1 ? "" : fmt::format("{} * ", std::abs(steps[i])),
                          loops_[i].variable);
    }
    if (first == 0 && text.starts_with(" + ")) return text.substr(3);
    return fmt::format("{}{}", first, text);
  }

  std::vector<std::string> Numbers(uint32_t index, std::vector<int32_t> ProgramCall::*numbers) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < (program_.calls[index].*numbers).size(); ++k) {
      texts.push_back(Number(index, [=](const ProgramCall& call) { return (call.*numbers)[k]; }));
    }
    return texts;
  }

  std::vector<CallText::Copy> Copies(uint32_t index,
                                     std::vector<ProgramCall::Copy> ProgramCall::*copies) {
    std::vector<CallText::Copy> texts;
    for (size_t k = 0; k < (program_.calls[index].*copies).size(); ++k) {
      texts.push_back(
          {.to = Number(index, [=](const ProgramCall& call) { return (call.*copies)[k].to; }),
           .from = Number(index, [=](const ProgramCall& call) { return (call.*copies)[k].from; })});
    }
    return texts;
  }

  // The order is fixed, so that tables have the same numbers in all languages.
  CallText TextOf(uint32_t index) {
    const ProgramCall& call = program_.calls[index];
    CallText text;
    text.awaited = Numbers(index, &ProgramCall::awaited);
    text.clear = Numbers(index, &ProgramCall::clear);
    for (size_t k = 0; k < call.views.size(); ++k) {
      text.views.push_back(
          {.slot = Number(index, [=](const ProgramCall& one) { return one.views[k].slot; }),
           .base = Number(index, [=](const ProgramCall& one) { return one.views[k].base; }),
           .form = Number(index, [=](const ProgramCall& one) { return one.views[k].form; })});
    }
    text.given = Copies(index, &ProgramCall::given);
    text.inputs = Numbers(index, &ProgramCall::inputs);
    text.numbers = Numbers(index, &ProgramCall::numbers);
    text.results = Numbers(index, &ProgramCall::results);
    text.fits = Numbers(index, &ProgramCall::fits);
    text.content = Copies(index, &ProgramCall::content);
    text.released = Numbers(index, &ProgramCall::released);
    if (call.work != kNoWork) {
      text.work = Number(index, [](const ProgramCall& one) { return one.work; });
    }
    return text;
  }

  void Write(const ProgramBlock& block) {
    if (block.body.empty()) {
      const ProgramCall& call = program_.calls[block.first];
      if (call.label != label_ && call.label >= 0) {
        Comment(OneLine(program_.labels[static_cast<size_t>(call.label)]));
      }
      label_ = call.label;
      WriteCall(call, TextOf(block.first));
      ++calls_;
      return;
    }
    const Loop loop{.variable = kVariables[loops_.size() % kVariables.size()],
                    .repeats = block.repeats,
                    .period = block.period};
    OpenLoop(loop);
    loops_.push_back(loop);
    ++depth_;
    for (const ProgramBlock& inner : block.body) Write(inner);
    --depth_;
    loops_.pop_back();
    CloseLoop();
  }

  template <typename Fn>
  void ForEachRound(uint32_t index, size_t level, int64_t expected,
                    const std::vector<int64_t>& steps, const Fn& fn) {
    if (level == loops_.size()) {
      fn(index, expected);
      return;
    }
    const Loop& loop = loops_[level];
    for (uint32_t round = 0; round < loop.repeats; ++round) {
      ForEachRound(index + round * loop.period, level + 1, expected + round * steps[level], steps,
                   fn);
    }
  }

  std::string Lookup(std::vector<int32_t> all) {
    std::string index;
    for (const Loop& loop : loops_) {
      index = index.empty() ? std::string(1, loop.variable)
                            : fmt::format("({}) * {} + {}", index, loop.repeats, loop.variable);
    }
    size_t number = 0;
    while (number < tables_.size() && tables_[number] != all) ++number;
    if (number == tables_.size()) tables_.push_back(std::move(all));
    return Table(number, index);
  }

  int32_t label_ = -1;
};

// Returns whether the slots are many consecutive ones outside of loops.
bool IsRange(const std::vector<int32_t>& slots, const std::vector<std::string>& texts) {
  constexpr size_t kMany = 4;
  if (slots.size() < kMany) return false;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (slots[k] != slots.front() + static_cast<int32_t>(k)) return false;
    if (texts[k] != fmt::format("{}", slots[k])) return false;
  }
  return true;
}

// Returns a number with all of its digits, and a point or an exponent.
std::string RealText(double real) {
  std::string text = fmt::format("{}", real);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Operators and overloads with such names cannot be written as attributes: aten::random_.from.
bool IsPythonKeyword(std::string_view name) {
  constexpr std::string_view kKeywords[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::ranges::find(kKeywords, name) != std::end(kKeywords);
}

std::string PythonAttribute(const std::string& owner, std::string_view name) {
  return IsPythonKeyword(name) ? fmt::format("getattr({}, \"{}\")", owner, name)
                               : fmt::format("{}.{}", owner, name);
}

// Returns bytes as a literal of C++ and of Python's b"": everything but printable ASCII is escaped.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7F) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns a Python literal: code points, with invisible ones escaped. Invalid UTF-8 becomes a bytes
// literal, which operators accept, too.
std::string PythonQuoted(std::string_view text) {
  if (!utf8::IsValid(text)) return "b" + Quoted(text);
  std::string inside;
  for (const char c : text) {
    if (c == '"' || c == '\\') inside += '\\';
    inside += c;
  }
  return "\"" + Printable(inside) + "\"";
}

class PythonWriter : public StepWriter {
 public:
  explicit PythonWriter(const Program& program) : StepWriter(program, 4) {}

 private:
  void OpenFunction(int part) override {
    functions_ += fmt::format("def part_{}(t):\n", part);
    depth_ = 1;
  }
  void CloseFunction() override { functions_ += "\n\n"; }
  void OpenLoop(const Loop& loop) override {
    Line(fmt::format("for {} in range({}):", loop.variable, loop.repeats));
  }
  void CloseLoop() override {}
  void Comment(std::string_view words) override { Line(fmt::format("# {}", words)); }
  std::string Table(size_t number, std::string_view index) const override {
    return fmt::format("TABLES[{}][{}]", number, index);
  }
  std::string Head() const override {
    return "\"\"\"The operators of the step, on tensors in slots: see benchmark.py.\"\"\"\n\n"
           "import torch\n\n" +
           std::string(
               program_.groups.empty()
                   ? ""
                   : "from ranks import begin, begin_batch, end_batch, finish, group, group_name, "
                     "reduction, wait\n") +
           "from runtime import FORMS, TABLES, copy_bytes, device, each, empty, fit, ops, "
           "view\n\n\n";
  }

  static std::string Slot(const std::string& number) { return fmt::format("t[{}]", number); }

  void Empty(const std::vector<int32_t>& slots, const std::vector<std::string>& texts) {
    if (IsRange(slots, texts)) {
      Line(fmt::format("empty(t, range({}, {}))", slots.front(), slots.back() + 1));
      return;
    }
    std::string line;
    for (const std::string& text : texts) line += Slot(text) + " = ";
    if (!texts.empty()) Line(line + "None");
  }

  void WriteCall(const ProgramCall& call, const CallText& text) override {
    for (const std::string& work : text.awaited) Line(fmt::format("wait({})", work));
    Empty(call.clear, text.clear);
    for (const CallText::View& view : text.views) {
      Line(fmt::format("{} = view({}, FORMS[{}])", Slot(view.slot), Slot(view.base), view.form));
    }
    for (const CallText::Copy& copy : text.given) {
      Line(fmt::format("copy_bytes({}, {})", Slot(copy.to), Slot(copy.from)));
    }
    const ProgramOperator& op = program_.operators[static_cast<size_t>(call.op)];
    std::string arguments;
    for (const ProgramOperator::Argument& argument : op.arguments) {
      if (argument.by_name && argument.value.kind == ProgramValue::Kind::kNone) continue;
      arguments += arguments.empty() ? "" : ", ";
      if (argument.by_name) arguments += argument.name + "=";
      arguments += Value(argument.value, call, text);
    }
    const size_t colons = op.name.find("::");
    std::string run =
        PythonAttribute("ops." + op.name.substr(0, colons), op.name.substr(colons + 2));
    run = PythonAttribute(run, op.overload.empty() ? "default" : op.overload);
    run += fmt::format("({})", arguments);
    if (call.batch_begins != kNoGroup) Line(fmt::format("begin_batch({})", call.batch_begins));
    Line(Run(op, call, text, run));
    if (call.batch_ends != kNoGroup) Line(fmt::format("end_batch({})", call.batch_ends));
    for (size_t k = 0; k < call.fits.size(); ++k) {
      if (call.fits[k] < 0 || call.results[k] == kNoSlot) continue;
      const std::string slot = Slot(text.results[k]);
      Line(fmt::format("{} = fit({}, FORMS[{}])", slot, slot, text.fits[k]));
    }
    for (const CallText::Copy& copy : text.content) {
      Line(fmt::format("copy_bytes({}, {})", Slot(copy.to), Slot(copy.from)));
    }
    Empty(call.released, text.released);
  }

  // Returns the statement that runs the operator and stores its results.
  static std::string Run(const ProgramOperator& op, const ProgramCall& call, const CallText& text,
                         const std::string& run) {
    if (call.finishes || !text.work.empty()) {
      std::string slots;
      for (size_t k = 0; k < call.results.size(); ++k) {
        slots += (k == 0 ? "" : ", ") + (call.results[k] == kNoSlot ? "None" : text.results[k]);
      }
      return text.work.empty() ? fmt::format("finish(t, [{}], {})", slots, run)
                               : fmt::format("begin({}, t, [{}], {})", text.work, slots, run);
    }
    const std::string left = Results(op, call, text);
    const bool is_one = op.returns_one_tensor && call.results.size() == 1;
    return left.empty() ? run : left + (is_one ? run : fmt::format("each({})", run));
  }

  // Returns the left side of the call: the targets of its results.
  static std::string Results(const ProgramOperator& op, const ProgramCall& call,
                             const CallText& text) {
    std::string left;
    bool any = false;
    for (size_t k = 0; k < call.results.size(); ++k) {
      left += k == 0 ? "" : ", ";
      left += call.results[k] == kNoSlot ? "_" : Slot(text.results[k]);
      any = any || call.results[k] != kNoSlot;
    }
    if (!any) return "";
    return left + (op.returns_one_tensor && call.results.size() == 1 ? " = " : ", *_ = ");
  }

  static std::string Real(double real) {
    return std::isfinite(real) ? RealText(real) : fmt::format("float(\"{}\")", RealText(real));
  }

  static std::string Value(const ProgramValue& value, const ProgramCall& call,
                           const CallText& text) {
    using Kind = ProgramValue::Kind;
    switch (value.kind) {
      case Kind::kNone: return "None";
      case Kind::kBool: return value.integer != 0 ? "True" : "False";
      case Kind::kInt: return fmt::format("{}", value.integer);
      case Kind::kDouble: return Real(value.real);
      case Kind::kComplex:
        return fmt::format("complex({}, {})", Real(value.real), Real(value.imaginary));
      case Kind::kText: return PythonQuoted(value.text);
      case Kind::kDType:
      case Kind::kLayout:
      case Kind::kMemoryFormat: return "torch." + value.text;
      case Kind::kDevice: return "device()";
      case Kind::kTensor:
      case Kind::kStorage: {
        const auto k = static_cast<size_t>(value.integer);
        if (call.inputs[k] == kNoSlot) return "None";
        const std::string slot = Slot(text.inputs[k]);
        return value.kind == Kind::kTensor ? slot : slot + ".untyped_storage()";
      }
      case Kind::kGroup: return fmt::format("group({})", value.integer);
      case Kind::kGroupName: return fmt::format("group_name({})", value.integer);
      case Kind::kReduction: return fmt::format("reduction({})", PythonQuoted(value.text));
      case Kind::kNumber: return text.numbers[static_cast<size_t>(value.integer)];
      case Kind::kList: {
        std::string items;
        for (const ProgramValue& item : value.items) {
          items += (items.empty() ? "" : ", ") + Value(item, call, text);
        }
        return "[" + items + "]";
      }
    }
    return {};
  }

  void WriteStep() override {
    functions_ += "def step(t):\n";
    for (int part = 1; part <= parts_; ++part) {
      functions_ += fmt::format("    part_{}(t)\n", part);
    }
    if (parts_ == 0) functions_ += "    pass\n";
  }
};

class CppWriter : public StepWriter {
 public:
  explicit CppWriter(const Program& program) : StepWriter(program, 2) {}

 private:
  void Declare() override {
    for (size_t i = 0; i < program_.operators.size(); ++i) {
      const ProgramOperator& op = program_.operators[i];
      std::string arguments;
      for (const ProgramOperator::Argument& argument : op.arguments) {
        arguments += (arguments.empty() ? "" : ", ") + Value(argument.value);
      }
      declarations_ += fmt::format("Op {}{{{}, {}, {{{}}}}};\n", Name(i), Quoted(op.name),
                                   Quoted(op.overload), arguments);
    }
  }

  std::string Name(size_t op) const {
    const std::string& name = program_.operators[op].name;
    return fmt::format("{}_{}", name.substr(name.find("::") + 2), op);
  }

  void OpenFunction(int part) override {
    functions_ += fmt::format("void Part{}(Slots& t) {{\n", part);
    depth_ = 1;
  }
  void CloseFunction() override { functions_ += "}\n\n"; }
  void OpenLoop(const Loop& loop) override {
    Line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", loop.variable, loop.repeats));
  }
  void CloseLoop() override { Line("}"); }
  void Comment(std::string_view words) override { Line(fmt::format("// {}", words)); }
  std::string Table(size_t number, std::string_view index) const override {
    return fmt::format("Table({}, {})", number, index);
  }
  std::string Head() const override {
    return "// The operators of the step, on tensors in slots: see benchmark.h.\n\n"
           "#include \"benchmark.h\"\n\nnamespace {\n\n";
  }

  static std::string List(const std::vector<std::string>& numbers) {
    return fmt::format("{{{}}}", fmt::join(numbers, ", "));
  }

  void Empty(const std::vector<int32_t>& slots, const std::vector<std::string>& texts) {
    if (IsRange(slots, texts)) {
      Line(fmt::format("ClearRange(t, {}, {});", slots.front(), slots.back() + 1));
    } else if (!texts.empty()) {
      Line(fmt::format("Clear(t, {});", List(texts)));
    }
  }

  void WriteCall(const ProgramCall& call, const CallText& text) override {
    for (const std::string& work : text.awaited) Line(fmt::format("Await({});", work));
    Empty(call.clear, text.clear);
    for (const CallText::View& view : text.views) {
      Line(fmt::format("View(t, {}, {}, {});", view.slot, view.base, view.form));
    }
    for (const CallText::Copy& copy : text.given) {
      Line(fmt::format("CopyBytes(t, {}, {});", copy.to, copy.from));
    }
    const std::string way = call.finishes       ? ".Finish("
                            : text.work.empty() ? "("
                                                : fmt::format(".Begin({}, ", text.work);
    const std::string numbers = text.numbers.empty() ? "" : ", " + List(text.numbers);
    if (call.batch_begins != kNoGroup) Line(fmt::format("BeginBatch({});", call.batch_begins));
    Line(fmt::format("{}{}t, {}, {}{});", Name(static_cast<size_t>(call.op)), way,
                     List(text.inputs), List(text.results), numbers));
    if (call.batch_ends != kNoGroup) Line(fmt::format("EndBatch({});", call.batch_ends));
    for (size_t k = 0; k < call.fits.size(); ++k) {
      if (call.fits[k] < 0 || call.results[k] == kNoSlot) continue;
      Line(fmt::format("Fit(t, {}, {});", text.results[k], text.fits[k]));
    }
    for (const CallText::Copy& copy : text.content) {
      Line(fmt::format("CopyBytes(t, {}, {});", copy.to, copy.from));
    }
    Empty(call.released, text.released);
  }

  static std::string Real(double real) {
    if (std::isnan(real)) return "NAN";
    if (std::isinf(real)) return real < 0 ? "-INFINITY" : "INFINITY";
    return RealText(real);
  }

  static std::string Value(const ProgramValue& value) {
    using Kind = ProgramValue::Kind;
    switch (value.kind) {
      case Kind::kNone: return "None()";
      case Kind::kBool: return value.integer != 0 ? "true" : "false";
      case Kind::kInt:
        // The minimum integer has no literal.
        return value.integer == INT64_MIN ? "INT64_MIN" : fmt::format("{}", value.integer);
      case Kind::kDouble: return Real(value.real);
      case Kind::kComplex:
        return fmt::format("Complex{{{}, {}}}", Real(value.real), Real(value.imaginary));
      case Kind::kText: return Quoted(value.text);
      case Kind::kDType: return fmt::format("DType({})", Quoted(value.text));
      case Kind::kLayout: return fmt::format("Layout({})", Quoted(value.text));
      case Kind::kMemoryFormat: return fmt::format("MemoryFormat({})", Quoted(value.text));
      case Kind::kDevice: return "RunDevice()";
      case Kind::kTensor: return fmt::format("Tensor({})", value.integer);
      case Kind::kStorage: return fmt::format("Storage({})", value.integer);
      case Kind::kGroup: return fmt::format("Group({})", value.integer);
      case Kind::kGroupName: return fmt::format("GroupName({})", value.integer);
      case Kind::kReduction: return fmt::format("Reduction({})", Quoted(value.text));
      case Kind::kNumber: return fmt::format("Number({})", value.integer);
      case Kind::kList: {
        std::string items;
        for (const ProgramValue& item : value.items) {
          items += (items.empty() ? "" : ", ") + Value(item);
        }
        return "ListOf({" + items + "})";
      }
    }
    return {};
  }

  void WriteStep() override {
    functions_ += "void Step(Slots& t) {\n";
    for (int part = 1; part <= parts_; ++part) {
      functions_ += fmt::format("  Part{}(t);\n", part);
    }
    functions_ += "}\n\n}  // namespace\n\n";
  }
};

}  // namespace

StepText PythonStep(const Program& program) { return PythonWriter(program).Write(); }
StepText CppStep(const Program& program) { return CppWriter(program).Write(); }

}  // namespace etude
