#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/tensor_factors.h"

namespace etude {

// The use that an operator makes of the values that it reads.
enum class ValueUse : uint8_t {
  kUnknown,  // the operator has no rule
  kNothing,  // it reads no values, or only makes a view
  kLinear,   // its results are sums of its arguments
  kSum,      // sums over dimensions
  kNorm,     // norms over dimensions: sums of powers, followed by a root
  kProduct,  // a matrix product
  kOther,    // each element of its results follows from the same elements of its arguments, or
             // from whole dimensions
};

// The role of dimensions in one operator.
struct OperatorRole {
  ValueUse use = ValueUse::kUnknown;
  // By result: the factors over which the operator sums.
  std::vector<std::vector<FactorId>> summed;
  // The two matrices of a product, by position among the tensors of the arguments.
  uint32_t left = 0;
  uint32_t right = 0;
};

// Roles of the dimensions of a step: unites the dimensions of each operator's tensors that mean the
// same, by a table of rules for PyTorch's operators, and limits those that an operator needs whole.
// An operator that calls others and has no rule is described by them; other operators without a
// rule limit the dimensions of their tensors as unknown.
class OperatorRoles {
 public:
  OperatorRoles(const RecordedStep& step, const DataFlow& flow, TensorFactors& tensors);

  // Returns the role of the operator at a position in the step.
  const OperatorRole& at(uint32_t position) const { return roles_[position]; }
  // Returns whether an operator with a rule calls the node at the position.
  bool is_inner(uint32_t position) const { return is_inner_[position]; }

  // Lookup in a table.
  struct Table {
    std::vector<FactorId> rows;
    std::vector<FactorId> indices;  // of all dimensions
  };
  // Return factors by what operators do with them: lookups, dimensions of logarithmic softmaxes, of
  // other softmaxes or of keys, heads, and depths of heads.
  std::span<const Table> tables() const { return tables_; }
  std::span<const FactorId> classes() const { return classes_; }
  std::span<const FactorId> lengths() const { return lengths_; }
  std::span<const FactorId> heads() const { return heads_; }
  std::span<const FactorId> depths() const { return depths_; }

 private:
  class Applier;

  std::vector<Table> tables_;
  std::vector<FactorId> classes_;
  std::vector<FactorId> lengths_;
  std::vector<FactorId> heads_;
  std::vector<FactorId> depths_;

  std::vector<OperatorRole> roles_;  // by position
  std::vector<bool> is_inner_;
};

}  // namespace etude
