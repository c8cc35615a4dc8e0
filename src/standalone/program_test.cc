#include "src/standalone/program.h"

#include <gtest/gtest.h>

#include <string>

#include "src/standalone/program_data.h"
#include "src/standalone/program_text.h"

namespace etude {
namespace {

using Kind = ProgramValue::Kind;

ProgramValue Tensor(int64_t input) { return {.kind = Kind::kTensor, .integer = input}; }

// `layers` times: x = x @ w[layer]; x = relu(x), and a mean at the end.
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
  // Weights, the input, then what the layers make: numbers that mean nothing.
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
                              .fill = ProgramMemory::Fill::kNormal,
                              .real = 0.5,
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

from runtime import FORMS, TABLES, copy_bytes, device, each, empty, fit, view

ops = torch.ops


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

TEST(Program, CppText) {
  const StepText step = CppStep(Layers(1000));
  EXPECT_EQ(step.calls, 3U);
  EXPECT_EQ(step.text, R"(// The operators of the step, on tensors in slots: see benchmark.h.

#include "benchmark.h"

namespace {

Op mm_0{"aten::mm", "", {Tensor(0), Tensor(1)}};
Op relu_1{"aten::relu", "", {Tensor(0)}};
Op mean_2{"aten::mean", "dim", {Tensor(0), List{-1}, true, DType("float64")}};

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

// y = relu(x), twice, into slots that are given.
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
  // The step before has filled it.
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
  EXPECT_EQ(ProgramData(Layers(1), {{7, 8}}), R"(benchmark 1
threads 1
heap 0 0 0
slots 4
forms 1
float32 0 2 4 4 4 1
memory 2
64 float32 normal 0.5 0 0 0 1 1 0
64 float32 normal 0.5 0 0 0 1 0 0
numbers 0
released 0
tables 1
2 7 8
)");
}

}  // namespace
}  // namespace etude
