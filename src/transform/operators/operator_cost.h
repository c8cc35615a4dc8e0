#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// What an operator computes and moves, by the shapes of its arguments
// (docs/models/operator_cost.md).
struct OperatorCost {
  uint64_t ops = 0;    // floating point operations; a multiplication and an addition are two
  uint64_t bytes = 0;  // inputs and outputs, each once
  // An operator below moves as much: it does the work, if this one launched no kernel itself.
  bool done_below = false;
};

// By node: the cost of each operator. Matrix products, convolutions and attention count by their
// formula, at the innermost operator that has one; all others one operation per element put out.
// Operators that only make views or get memory cost nothing. nullopt for what is no operator or has
// no shapes.
std::vector<std::optional<OperatorCost>> OperatorCosts(const Trace& trace);

// Whether the operator, "aten::addmm", is a matrix product, a convolution or attention.
bool IsMatrixOperator(std::string_view base_name);

// What the operators of a trace compute and move, each once, where the work is done.
struct Work {
  double flop = 0;
  double bytes = 0;
  int64_t without_shapes = 0;  // operators that are not in these sums
};
// `weights`: by node how often it counts; empty: once.
Work WorkOf(const Trace& trace, std::span<const double> weights = {});

}  // namespace etude
