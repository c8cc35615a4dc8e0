#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Operations and bytes of an operator, by the shapes of its arguments
// (docs/models/operator_cost.md).
struct OperatorCost {
  uint64_t ops = 0;    // floating-point operations; a multiplication and an addition are two
  uint64_t bytes = 0;  // inputs and outputs, each once
  // An operator below moves as many bytes: it does the work, unless this one launched a kernel
  // itself.
  bool done_below = false;
};

// Returns, by node, the cost of each operator. Matrix products, convolutions and attention count by
// their formula, at the innermost operator that has one; all others count one operation per output
// element. Operators that only make views or allocate memory cost nothing. nullopt for nodes that
// are not operators or have no shapes.
std::vector<std::optional<OperatorCost>> OperatorCosts(const Trace& trace);

// Returns true if the operator ("aten::addmm") is a matrix product, a convolution or attention.
bool IsMatrixOperator(std::string_view base_name);

// Total operations and bytes of a trace's operators, each counted once, where the work is done.
struct Work {
  double flop = 0;
  double bytes = 0;
  int64_t without_shapes = 0;  // number of operators excluded from these sums
};
// Returns the totals. `weights`: multiplicity by node; empty: once each.
Work WorkOf(const Trace& trace, std::span<const double> weights = {});

}  // namespace etude
