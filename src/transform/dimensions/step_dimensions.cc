#include "src/transform/dimensions/step_dimensions.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/run/step/tensor_shape.h"
#include "src/run/step/updated_tensors.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

bool IsFloat(const Trace& trace, const TensorUse& use) {
  constexpr auto kFloats =
      std::to_array<DType>({DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64});
  return std::ranges::find(kFloats, DTypeOf(trace, use)) != kFloats.end();
}

constexpr std::string_view kConversion = "aten::_to_copy";

// Returns whether an operator copies a tensor, such as a weight to another type.
bool Copies(std::string_view name) {
  return name == "aten::copy_" || name == "aten::clone" || name == kConversion;
}

}  // namespace

StepDimensions::StepDimensions(const Trace& trace)
    : trace_(trace),
      step_(RecordedStep::All(trace)),
      flow_(step_),
      tensors_(step_, flow_),
      roles_(step_, flow_, tensors_) {
  FindWeights();
  FindProducts();
}

void StepDimensions::FindWeights() {
  std::vector<bool> needs(flow_.version_count());
  std::vector<bool> changes(flow_.version_count());
  std::vector<bool> may_be(flow_.version_count());
  UpdatedTensors updated(trace_);
  bool is_stated = false;
  bool is_changed = false;
  for (uint32_t i = 0; i < step_.nodes().size(); ++i) {
    if (!step_.is_operator(i)) continue;
    const NodeId node = step_.nodes()[i];
    const std::vector<bool> is_updated = updated.Of(node);
    const auto uses = flow_.inputs(node);
    for (size_t k = 0; k < uses.size(); ++k) {
      const TensorUse& use = trace_.tensor(uses[k].tensor);
      const StorageVersion version = uses[k].version;
      if (!version || flow_.version(version).origin || !IsFloat(trace_, use)) continue;
      may_be[version.index()] = true;
      if (use.requires_grad == Known::kYes) needs[version.index()] = is_stated = true;
      if (k < is_updated.size() && is_updated[k]) changes[version.index()] = is_changed = true;
    }
  }
  is_weight_ = is_stated ? needs : is_changed ? changes : may_be;
  is_old_ = std::move(may_be);
  ForEachOperator([&](uint32_t, NodeId node) {
    for (const DataFlow::Use& use : flow_.inputs(node)) {
      if (!use.version || !is_weight_[use.version.index()]) continue;
      const auto& dims = tensors_.Of(use, node);
      const auto strides = trace_.ints(trace_.tensor(use.tensor).strides);
      for (size_t i = 0; i < dims.size(); ++i) {
        if (i < strides.size() && strides[i] == 0) continue;  // a weight repeated for each sample
        for (const FactorId factor : factors().Expand(dims[i])) of_weights_.insert(factor);
      }
    }
  });
  for (uint32_t i = 0; i < step_.nodes().size(); ++i) {
    const NodeId node = step_.nodes()[i];
    if (!step_.is_operator(i) || flow_.outputs(node).empty()) continue;
    // Autocast converts weights inside of the operators that use them. Other copies there may be
    // those of a bias into a result.
    const std::string_view name = trace_.name(node);
    if (roles_.is_inner(i) ? name != kConversion : !Copies(name)) continue;
    const StorageVersion copy = flow_.outputs(node).front().version;
    const bool is_copied = std::ranges::any_of(flow_.inputs(node), [&](const auto& use) {
      return use.version && use.version != copy && is_weight_[use.version.index()];
    });
    if (is_copied && copy) is_weight_[copy.index()] = true;
  }
}

Status StepDimensions::Check() const {
  if (!step_.top_operators().empty() && flow_.version_count() > 0) return {};
  return BadInput(
      "found no operators with schemas and tensors, expected a recording with the program's "
      "operators, such as that of `etude record`");
}

std::optional<DataFlow::Use> StepDimensions::WeightOf(const OperatorRole& role, NodeId node) const {
  const auto uses = flow_.inputs(node);
  if (role.left >= uses.size() || role.right >= uses.size()) return std::nullopt;
  const auto is_weight = [&](const DataFlow::Use& use) {
    return use.version && is_weight_[use.version.index()];
  };
  const DataFlow::Use& left = uses[role.left];
  const DataFlow::Use& right = uses[role.right];
  if (is_weight(left) != is_weight(right)) return is_weight(left) ? left : right;
  if (is_weight(left)) return std::nullopt;
  // Weights that need no gradient, such as those beside adapters, are matrices.
  const auto is_frozen = [&](const DataFlow::Use& use) {
    return use.version && is_old_[use.version.index()] &&
           trace_.ints(trace_.tensor(use.tensor).shape).size() == 2;
  };
  if (is_frozen(right)) return right;
  return is_frozen(left) ? std::optional(left) : std::nullopt;
}

std::set<FactorId> StepDimensions::Finest(std::span<const FactorId> list) const {
  const std::vector<FactorId> finest = factors().Expand(list);
  return {finest.begin(), finest.end()};
}

std::string StepDimensions::PlaceOf(NodeId node) const {
  return fmt::format("'{}' (node {})", trace_.name(node), trace_.source_id(node));
}

// Products, sums and norms over a dimension need the whole of it, except products with weights, and
// sums and norms of gradients of weights.
void StepDimensions::FindProducts() {
  auto last_gradient = static_cast<uint32_t>(step_.nodes().size());
  for (uint32_t i = 0; i < step_.nodes().size(); ++i) {
    if (IsGradientAccumulation(trace_.name(step_.nodes()[i]))) last_gradient = i;
  }
  ForEachOperator([&](uint32_t position, NodeId node) {
    const OperatorRole& role = roles_.at(position);
    std::vector<FactorId> summed;
    for (const auto& list : role.summed) {
      for (const FactorId factor : list) factors().Expand(factor, summed);
    }
    if (summed.empty()) return;
    const auto limit = [&] { tensors_.factors().Limit(summed, FactorLimit::kWhole, node); };
    const bool in_backward = IsInBackward(trace_, node);
    if (role.use == ValueUse::kNorm || role.use == ValueUse::kSum) {
      const bool is_of_gradient = role.use == ValueUse::kSum && in_backward;
      if ((in_backward || position < last_gradient) && !is_of_gradient) limit();
      return;
    }
    if (role.use != ValueUse::kProduct) return;
    if (!WeightOf(role, node)) limit();
    if (!in_backward) AddProduct(position, node, summed);
  });
}

void StepDimensions::AddProduct(uint32_t position, NodeId node, std::span<const FactorId> summed) {
  const OperatorRole& role = roles_.at(position);
  const auto uses = flow_.inputs(node);
  const auto weight = WeightOf(role, node);
  if (role.left >= uses.size() || role.right >= uses.size()) return;
  const auto finest_of = [&](const DataFlow::Use& use) {
    std::set<FactorId> finest;
    for (const auto& dim : tensors_.Of(use, node)) finest.merge(Finest(dim));
    return finest;
  };
  const std::set<FactorId> left = finest_of(uses[role.left]);
  const std::set<FactorId> right = finest_of(uses[role.right]);
  const auto is_summed = [&](FactorId factor) {
    return std::ranges::find(summed, factor) != summed.end();
  };
  if (!weight) {
    summed_without_weights_.insert(summed.begin(), summed.end());
    for (const FactorId factor : left) {
      if (right.contains(factor) && !is_summed(factor)) repeated_without_weights_.insert(factor);
    }
    return;
  }
  for (const auto& dim : tensors_.Of(*weight, node)) {
    weight_dims_.push_back(factors().Expand(dim));
  }
  const bool is_left = weight->version == uses[role.left].version;
  for (const FactorId factor : is_left ? left : right) {
    WeightFactor& of = weight_factors_[factor];
    std::optional<uint32_t>& first = is_summed(factor) ? of.summed : of.made;
    first = std::min(first.value_or(position), position);
    of.weights.insert(weight->version);
  }
  std::set<FactorId> activations = is_left ? right : left;
  std::erase_if(activations, is_summed);
  of_some_activations_.insert(activations.begin(), activations.end());
  if (!std::exchange(has_products_, true)) {
    of_activations_ = std::move(activations);
  } else {
    std::erase_if(of_activations_, [&](FactorId factor) { return !activations.contains(factor); });
  }
}

}  // namespace etude
