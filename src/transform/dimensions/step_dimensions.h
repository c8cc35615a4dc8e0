#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/operator_roles.h"
#include "src/transform/dimensions/tensor_factors.h"

namespace etude {

// Use of a factor by matrix products with weights in the forward pass.
struct WeightFactor {
  // Positions of the first product with it as a dimension of a weight and of the result, and of
  // the first one that sums over it.
  std::optional<uint32_t> made;
  std::optional<uint32_t> summed;
  std::set<StorageVersion> weights;

  // Returns whether products pass it from one weight to the next. A factor that is summed over
  // first comes from elsewhere, such as from an embedding.
  bool is_passed() const { return made && summed && *made <= *summed; }
};

// The dimensions of a recorded step with their meaning: docs/models/what_if.md. Refers to the
// trace. Not thread-safe.
class StepDimensions {
 public:
  explicit StepDimensions(const Trace& trace);
  StepDimensions(const StepDimensions&) = delete;
  StepDimensions& operator=(const StepDimensions&) = delete;

  // Returns kBadInput if the trace lacks operators with their tensors.
  Status Check() const;

  const Trace& trace() const { return trace_; }
  const RecordedStep& step() const { return step_; }
  const DataFlow& flow() const { return flow_; }
  TensorFactors& tensors() { return tensors_; }
  const Factors& factors() const { return tensors_.factors(); }
  const OperatorRoles& roles() const { return roles_; }

  // Calls `fn(position, node)` for the operators that no operator with a rule calls.
  template <typename Fn>
  void ForEachOperator(Fn fn) const {
    const auto count = static_cast<uint32_t>(step_.nodes().size());
    for (uint32_t i = 0; i < count; ++i) {
      if (step_.is_operator(i) && !roles_.is_inner(i)) fn(i, step_.nodes()[i]);
    }
  }

  // Returns the matrix of a product that is a weight, or a copy of one; nullopt if none or both
  // are. A weight is floating-point memory from before the step that needs a gradient, or if the
  // recording does not state this, that the step changes. In products without one, a matrix from
  // before the step is a weight, too.
  std::optional<DataFlow::Use> WeightOf(const OperatorRole& role, NodeId node) const;

  // Return finest factors: those of weights in products of the forward pass, those of the other
  // factor of these products in all of them, those of any weight, and those over which products
  // without weights sum, or with which they repeat.
  const std::map<FactorId, WeightFactor>& weight_factors() const { return weight_factors_; }
  // Returns each dimension of such a weight, in the forward pass.
  std::span<const std::vector<FactorId>> weight_dims() const { return weight_dims_; }
  const std::set<FactorId>& of_activations() const { return of_activations_; }
  // Returns likewise those in any of these products.
  const std::set<FactorId>& of_some_activations() const { return of_some_activations_; }
  const std::set<FactorId>& of_weights() const { return of_weights_; }
  const std::set<FactorId>& summed_without_weights() const { return summed_without_weights_; }
  const std::set<FactorId>& repeated_without_weights() const { return repeated_without_weights_; }

  // Returns the finest factors of lists.
  std::set<FactorId> Finest(std::span<const FactorId> factors) const;
  // Returns an operator with its place, for messages.
  std::string PlaceOf(NodeId node) const;

 private:
  void FindWeights();
  void FindProducts();
  void AddProduct(uint32_t position, NodeId node, std::span<const FactorId> summed);

  const Trace& trace_;
  RecordedStep step_;
  DataFlow flow_;
  TensorFactors tensors_;
  OperatorRoles roles_;
  std::vector<bool> is_weight_;  // by version
  std::vector<bool> is_old_;     // likewise: floating-point memory from before the step
  std::map<FactorId, WeightFactor> weight_factors_;
  std::vector<std::vector<FactorId>> weight_dims_;
  bool has_products_ = false;
  std::set<FactorId> of_activations_;
  std::set<FactorId> of_some_activations_;
  std::set<FactorId> of_weights_;
  std::set<FactorId> summed_without_weights_;
  std::set<FactorId> repeated_without_weights_;
};

}  // namespace etude
