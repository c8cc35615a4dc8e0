#include "src/standalone/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/standalone/program_data.h"
#include "src/standalone/program_text.h"

namespace etude {
namespace {

using Kind = ProgramValue::Kind;

ProgramValue Tensor(int64_t input) { return {.kind = Kind::kTensor, .integer = input}; }

// `layers` times: x = x @ w[layer]; x = relu(x). A mean at the end.
Program Layers(int layers) {
  Program program;
  program.operators = {
      {.name = "aten::mm",
       .arguments = {{.name = "self", .value = Tensor(0)}, {.name = "mat2", .value = Tensor(1)}},
       .returns_one_tensor = true},
      {.name = "aten::relu",
       .arguments = {{.name = "self", .value = Tensor(0)}},
       .returns_one_tensor = true},
      {.name = "aten::mean",
       .overload = "dim",
       .arguments =
           {{.name = "self", .value = Tensor(0)},
            {.name = "dim",
             .value = {.kind = Kind::kList, .items = {{.kind = Kind::kInt, .integer = -1}}}},
            {.name = "keepdim", .value = {.kind = Kind::kBool, .integer = 1}},
            {.name = "dtype", .by_name = true, .value = {.kind = Kind::kDType, .text = "float64"}}},
       .returns_one_tensor = true}};
  program.forms = {{.dtype = "float32", .sizes = {4, 4}, .strides = {4, 1}}};
  // Weights, the input, then results of the layers; the numbering is arbitrary.
  int32_t x = layers;
  int32_t next = layers + 1;
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t y = next++;
    const int32_t z = next++;
    program.calls.push_back({.op = 0, .inputs = {x, layer}, .results = {y}, .released = {x}});
    program.calls.push_back({.op = 1, .inputs = {y}, .results = {z}, .released = {y}});
    x = z;
  }
  program.calls.push_back({.op = 2, .inputs = {x}, .results = {kNoSlot}});
  for (int32_t slot = 0; slot <= layers; ++slot) {
    program.memory.push_back({.bytes = 64,
                              .dtype = "float32",
                              .fill = {.kind = MemoryFill::Kind::kNormal, .real = 0.5},
                              .tensors = {{.slot = slot}}});
  }
  program.slots = next;
  RenumberSlots(program);
  return program;
}

TEST(Program, RepeatedLayersAreALoop) {
  const auto blocks = FindLoops(Layers(1000));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].repeats, 1000U);
  EXPECT_EQ(blocks[0].period, 2U);
  ASSERT_EQ(blocks[0].body.size(), 2U);
  EXPECT_EQ(blocks[1].first, 2000U);
  EXPECT_TRUE(blocks[1].body.empty());
}

TEST(Program, LoopsHoldLoops) {
  Program program = Layers(1);
  const ProgramCall a = program.calls[0];
  const ProgramCall b = program.calls[1];
  program.calls.clear();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 7; ++i) program.calls.push_back(a);
    program.calls.push_back(b);
  }
  const auto blocks = FindLoops(program);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].repeats, 5U);
  ASSERT_EQ(blocks[0].body.size(), 2U);
  EXPECT_EQ(blocks[0].body[0].repeats, 7U);
}

// Plain version of FindLoops: the best repetition, then the rest of it, inside and after it.
void AppendPlainly(const std::vector<int32_t>& kinds, size_t begin, size_t end,
                   std::vector<ProgramBlock>& blocks) {
  size_t best_begin = 0, best_period = 0, best_repeats = 0, best_saved = 0;
  for (size_t period = 1; 2 * period <= end - begin; ++period) {
    for (size_t first = begin; first + 2 * period <= end; ++first) {
      size_t last = first;
      while (last + period < end && kinds[last] == kinds[last + period]) ++last;
      const size_t repeats = (last - first) / period + 1;
      const size_t saved = repeats < 2 ? 0 : (repeats - 1) * period - 1;
      if (saved <= best_saved) continue;
      std::tie(best_begin, best_period, best_repeats) = std::tie(first, period, repeats);
      best_saved = saved;
    }
  }
  if (best_saved == 0) {
    for (size_t i = begin; i < end; ++i) blocks.push_back({.first = static_cast<uint32_t>(i)});
    return;
  }
  AppendPlainly(kinds, begin, best_begin, blocks);
  ProgramBlock loop{.first = static_cast<uint32_t>(best_begin),
                    .period = static_cast<uint32_t>(best_period),
                    .repeats = static_cast<uint32_t>(best_repeats)};
  AppendPlainly(kinds, best_begin, best_begin + best_period, loop.body);
  blocks.push_back(std::move(loop));
  AppendPlainly(kinds, best_begin + best_period * best_repeats, end, blocks);
}

std::string Text(const std::vector<ProgramBlock>& blocks) {
  std::string text;
  for (const ProgramBlock& block : blocks) {
    text += block.body.empty() ? " " + std::to_string(block.first)
                               : " " + std::to_string(block.repeats) + "(" + Text(block.body) + ")";
  }
  return text;
}

TEST(Program, LoopsAreThoseOfThePlainSearch) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    // Repeating pieces of few kinds.
    std::vector<int32_t> kinds;
    const size_t size = 5 + random() % 60;
    while (kinds.size() < size) {
      std::vector<int32_t> piece(1 + random() % 6);
      for (int32_t& kind : piece) kind = static_cast<int32_t>(random() % 3);
      for (size_t repeats = 1 + random() % 4; repeats > 0; --repeats) {
        kinds.insert(kinds.end(), piece.begin(), piece.end());
      }
    }
    Program program;
    for (const int32_t kind : kinds) program.calls.push_back({.op = kind});
    std::vector<ProgramBlock> plain;
    AppendPlainly(kinds, 0, kinds.size(), plain);
    ASSERT_EQ(Text(FindLoops(program)), Text(plain)) << testing::PrintToString(kinds);
  }
}

// x = x + narrow(sequence, 0, step, 1), `steps` times; each step is a separate operator.
Program Sequence(int steps) {
  Program program;
  program.operators = {
      {.name = "aten::add",
       .overload = "Tensor",
       .arguments = {{.name = "self", .value = Tensor(0)}, {.name = "other", .value = Tensor(1)}},
       .returns_one_tensor = true}};
  int32_t next = 2;
  for (int step = 0; step < steps; ++step) {
    const auto integer = [](int64_t value) {
      return ProgramValue{.kind = Kind::kInt, .integer = value};
    };
    program.operators.push_back({.name = "aten::narrow",
                                 .arguments = {{.name = "self", .value = Tensor(0)},
                                               {.name = "dim", .value = integer(0)},
                                               {.name = "start", .value = integer(step)},
                                               {.name = "length", .value = integer(1)}},
                                 .returns_one_tensor = true});
    const int32_t part = next++;
    const int32_t sum = next++;
    program.calls.push_back({.op = step + 1, .inputs = {0}, .results = {part}});
    program.calls.push_back({.op = 0,
                             .inputs = {step == 0 ? 1 : part - 1, part},
                             .results = {sum},
                             .released = {part}});
  }
  program.slots = next;
  ShareOperators(program);
  RenumberSlots(program);
  return program;
}

TEST(Program, OperatorsThatAreAlikeButForNumbersAreOne) {
  const Program program = Sequence(50);
  ASSERT_EQ(program.operators.size(), 2U);
  EXPECT_EQ(program.operators[0].name, "aten::narrow");
  EXPECT_EQ(program.calls[6].numbers, std::vector<int32_t>{3});
  EXPECT_TRUE(program.calls[7].numbers.empty());
  const std::string text = PythonStep(program).text;
  EXPECT_NE(text.find("    for i in range(50):\n"), std::string::npos) << text;
  EXPECT_NE(text.find("ops.aten.narrow.default(t[0], 0, i, 1)\n"), std::string::npos) << text;
  const std::string code = CppStep(program).text;
  EXPECT_NE(code.find("Op narrow_0{\"aten::narrow\", \"\", {Tensor(0), 0, Number(0), 1}};\n"),
            std::string::npos)
      << code;
  EXPECT_NE(code.find("    narrow_0(t, {0}, {Table(0, i)}, {i});\n"), std::string::npos) << code;
}

TEST(Program, FewOperatorsStayWhatTheyAre) {
  const Program program = Sequence(15);
  EXPECT_EQ(program.operators.size(), 16U);
  EXPECT_TRUE(program.calls[6].numbers.empty());
}

// Integers that a call cannot hold stay in the operator.
TEST(Program, GreatNumbersAreNotShared) {
  Program program = Sequence(1);
  program.calls.clear();
  const ProgramOperator narrow = program.operators[0];
  program.operators.clear();
  for (int64_t i = 0; i < 20; ++i) {
    ProgramOperator& op = program.operators.emplace_back(narrow);
    op.arguments[2].value.integer = (int64_t{1} << 40) + i % 2;
    op.arguments[3].value.integer = i;
    program.calls.push_back({.op = static_cast<int32_t>(i), .inputs = {0}, .results = {1}});
  }
  ShareOperators(program);
  EXPECT_EQ(program.operators.size(), 20U);  // ten of each
}

TEST(Program, EveryCallStandsInTheBlocksOnce) {
  const Program program = Layers(13);
  uint32_t calls = 0;
  for (const ProgramBlock& block : FindLoops(program)) calls += block.period * block.repeats;
  EXPECT_EQ(calls, program.calls.size());
}

TEST(Program, PythonText) {
  EXPECT_EQ(PythonStep(Layers(3)).text,
            R"("""The operators of the step, on tensors in slots: see benchmark.py."""

import torch

from runtime import FORMS, TABLES, copy_bytes, device, each, empty, fit, ops, view


def part_1(t):
    for i in range(3):
        t[2 + 3 * i] = ops.aten.mm.default(t[3 * i], t[1 + 3 * i])
        t[3 * i] = None
        t[3 + 3 * i] = ops.aten.relu.default(t[2 + 3 * i])
        t[2 + 3 * i] = None
    ops.aten.mean.dim(t[9], [-1], True, dtype=torch.float64)


def step(t):
    part_1(t)
)");
}

TEST(Program, NamesThatPythonKeepsForItself) {
  Program program;
  program.operators = {{.name = "aten::random_",
                        .overload = "from",
                        .arguments = {{.name = "self", .value = Tensor(0)}},
                        .returns_one_tensor = true}};
  program.calls = {{.inputs = {0}, .results = {1}}};
  program.slots = 2;
  EXPECT_NE(PythonStep(program).text.find("t[1] = getattr(ops.aten.random_, \"from\")(t[0])"),
            std::string::npos);
}

// Makes a step with the single call text::say(text).
Program Says(std::string text) {
  Program program;
  program.operators = {
      {.name = "text::say",
       .arguments = {{.name = "s", .value = {.kind = Kind::kText, .text = std::move(text)}}}}};
  program.calls = {{}};
  return program;
}

TEST(Program, TextsAreReadAsTheyWere) {
  const auto python = [](const std::string& text) {
    const std::string step = PythonStep(Says(text)).text;
    const size_t begin = step.find("say.default(") + 12;
    return step.substr(begin, step.find(")\n", begin) - begin);
  };
  EXPECT_EQ(python("mean"), R"("mean")");
  EXPECT_EQ(python("größe"), R"("größe")");
  EXPECT_EQ(python("a\"b\\\n"), R"("a\"b\\\u000a")");
  // Characters that control an editor or a terminal.
  EXPECT_EQ(python("\u0085\u202e\U0001f600"), "\"\\u0085\\u202e\U0001f600\"");
  // Invalid UTF-8.
  EXPECT_EQ(python("gr\xF6\xDF\n"), R"(b"gr\366\337\012")");
  const std::string code = CppStep(Says("größe\n")).text;
  EXPECT_NE(code.find(R"({"gr\303\266\303\237e\012"})"), std::string::npos) << code;
}

TEST(Program, ComplexNumbers) {
  Program program;
  program.operators = {
      {.name = "aten::full",
       .arguments = {{.name = "fill_value",
                      .value = {.kind = Kind::kComplex, .real = 2, .imaginary = -INFINITY}}}}};
  program.calls = {{}};
  EXPECT_NE(PythonStep(program).text.find(R"(full.default(complex(2.0, float("-inf"))))"),
            std::string::npos);
  EXPECT_NE(CppStep(program).text.find("{Complex{2.0, -INFINITY}}"), std::string::npos);
}

TEST(Program, CppText) {
  const StepText step = CppStep(Layers(1000));
  EXPECT_EQ(step.calls, 3U);
  EXPECT_EQ(step.text, R"(// The operators of the step, on tensors in slots: see benchmark.h.

#include "benchmark.h"

namespace {

Op mm_0{"aten::mm", "", {Tensor(0), Tensor(1)}};
Op relu_1{"aten::relu", "", {Tensor(0)}};
Op mean_2{"aten::mean", "dim", {Tensor(0), ListOf({-1}), true, DType("float64")}};

void Part1(Slots& t) {
  for (int i = 0; i < 1000; ++i) {
    mm_0(t, {3 * i, 1 + 3 * i}, {2 + 3 * i});
    Clear(t, {3 * i});
    relu_1(t, {2 + 3 * i}, {3 + 3 * i});
    Clear(t, {2 + 3 * i});
  }
  mean_2(t, {3000}, {-1});
}

void Step(Slots& t) {
  Part1(t);
}

}  // namespace

)");
}

TEST(Program, ReleasesAtEndKeepTheirNumbers) {
  Program program = Layers(1);
  program.released_at_end = {3};
  RenumberSlots(program);
  EXPECT_EQ(program.released_at_end, std::vector<int32_t>{3});
  EXPECT_EQ(program.slots, 4);
}

// y = relu(x), twice, into the given slots.
Program TwoCalls(int32_t first, int32_t second) {
  Program program;
  program.operators = {{.name = "aten::relu",
                        .arguments = {{.name = "self", .value = Tensor(0)}},
                        .returns_one_tensor = true}};
  program.calls = {{.inputs = {0}, .results = {first}, .released = {first}},
                   {.inputs = {0}, .results = {second}, .released = {second}}};
  program.memory = {{.bytes = 4, .dtype = "float32", .tensors = {{.slot = 0}}}};
  program.slots = 3;
  RenumberSlots(program);
  return program;
}

TEST(Program, AnEmptiedSlotIsFilledByAnotherNumber) {
  for (const Program& program : {TwoCalls(1, 1), TwoCalls(1, 2), TwoCalls(2, 1)}) {
    EXPECT_EQ(program.calls[0].results, std::vector<int32_t>{1});
    EXPECT_EQ(program.calls[0].released, std::vector<int32_t>{1});
    EXPECT_EQ(program.calls[1].results, std::vector<int32_t>{2});
    EXPECT_EQ(program.calls[1].released, std::vector<int32_t>{2});
    EXPECT_EQ(program.slots, 3);
  }
}

TEST(Program, WhatIsThereBeforeTheStepKeepsItsNumber) {
  Program read = TwoCalls(1, 2);
  read.calls[0] = {.inputs = {0}, .results = {1}, .released = {0}};
  read.calls[1] = {.inputs = {1}, .results = {0}};
  RenumberSlots(read);
  EXPECT_EQ(read.memory[0].tensors[0].slot, 0);
  EXPECT_EQ(read.calls[1].results, std::vector<int32_t>{0});
  // The previous step has filled it.
  Program emptied = TwoCalls(1, 2);
  emptied.calls[0] = {.clear = {2}, .inputs = {0}, .results = {1}};
  emptied.calls[1] = {.inputs = {1}, .results = {2}};
  RenumberSlots(emptied);
  EXPECT_EQ(emptied.calls[1].results, emptied.calls[0].clear);
}

TEST(Program, NumbersOfOneValueAreOneSlot) {
  const auto of = [](double first, double second) {
    Program program;
    program.operators = {
        {.name = "aten::mul",
         .overload = "Tensor",
         .arguments = {{.name = "self", .value = Tensor(0)}, {.name = "other", .value = Tensor(1)}},
         .returns_one_tensor = true}};
    program.calls = {{.inputs = {0, 1}, .results = {kNoSlot}},
                     {.inputs = {0, 2}, .results = {kNoSlot}}};
    program.numbers = {{.slot = 1, .value = {.kind = Kind::kDouble, .real = first}},
                       {.slot = 2, .value = {.kind = Kind::kDouble, .real = second}}};
    program.slots = 3;
    RenumberSlots(program);
    return program;
  };
  EXPECT_EQ(of(0.5, 0.5).calls[1].inputs, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(of(0.5, 0.5).numbers.size(), 1U);
  EXPECT_EQ(of(0.5, 0.5).slots, 2);
  EXPECT_EQ(of(0.5, 0.25).calls[1].inputs, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(of(0.0, -0.0).numbers.size(), 2U);
}

TEST(Program, Data) {
  EXPECT_EQ(ProgramData(Layers(1), {{7, 8}}), R"(benchmark 3
covers 0 0 unknown
threads 1
heap 0 0 0
slots 4
forms 1
float32 0 2 4 4 4 1
memory 2
64 float32 normal 0.5 0 0 0 0 1 1 0
64 float32 normal 0.5 0 0 0 0 1 0 0
numbers 0
released 0
tables 1
2 7 8
)");
}

TEST(Program, GapsAsData) {
  Program program = Layers(1);
  EXPECT_EQ(GapData(program), "");
  program.gaps.assign(program.calls.size() + 1, {.idle = Nanos{7}, .busy = Nanos{1'500}});
  program.gaps.back() = {};
  const std::string text = GapData(program);
  EXPECT_EQ(text.substr(0, text.find('\n')), "gaps 1");
  EXPECT_NE(text.find("\n7 1500\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n0 0\n"));
}

// Marks of writing direction would show code in a misleading order; a line break would end the
// comment.
TEST(ProgramText, NamesInCommentsStayInThem) {
  Program program = Layers(1);
  program.labels = {"a\nimport os\r\xe2\x80\xae\\"};
  program.calls.front().label = 0;
  for (const std::string& text : {PythonStep(program).text, CppStep(program).text}) {
    EXPECT_NE(text.find(" a?import os?\\u202e?\n"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace etude
