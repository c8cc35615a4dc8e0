#include "src/transform/dimensions/tensor_parallel.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/format_count.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/run/step/tensor_shape.h"
#include "src/transform/dimensions/operator_roles.h"
#include "src/transform/dimensions/step_dimensions.h"
#include "src/transform/layers/step_items.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {
namespace {

class Divider {
 public:
  Divider(const Trace& trace, int64_t ranks)
      : trace_(trace),
        ranks_(ranks),
        dimensions_(trace),
        step_(dimensions_.step()),
        flow_(dimensions_.flow()),
        tensors_(dimensions_.tensors()),
        roles_(dimensions_.roles()) {}

  Result<TensorParallelStep> Run(const Limits& limits) {
    ETUDE_RETURN_IF_ERROR(dimensions_.Check());
    ETUDE_RETURN_IF_ERROR(Choose());
    FindReductions();
    ETUDE_ASSIGN_OR_RETURN(static_cast<ResizedStep&>(result_),
                           ResizeStep(dimensions_, sizes_, limits));
    CountProducts(result_.trace);
    return std::move(result_);
  }

 private:
  tl::unexpected<Error> UnknownOperator(NodeId node, int64_t size) const {
    return BadInput(fmt::format(
        "found {} on a dimension of {} that would be divided, expected only operators whose "
        "dimensions are known",
        dimensions_.PlaceOf(node), size));
  }

  // An operator without a rule between two weights hides that they share a dimension.
  Status CheckHidden() const {
    const Factors& factors = dimensions_.factors();
    for (const auto& [made, first] : dimensions_.weight_factors()) {
      const NodeId by = factors.limit(made, FactorLimit::kUnknown);
      if (!first.made || first.summed || !by) continue;
      for (const auto& [summed, second] : dimensions_.weight_factors()) {
        const NodeId until = factors.limit(summed, FactorLimit::kUnknown);
        const bool follows = second.summed && !second.made && until &&
                             *second.summed > *first.made &&
                             step_.position(by) <= step_.position(until);
        if (follows && factors.size(made) == factors.size(summed)) {
          return UnknownOperator(by, factors.size(made));
        }
      }
    }
    return {};
  }

  Status Choose() {
    ETUDE_RETURN_IF_ERROR(CheckHidden());
    std::set<FactorId> can_be;
    NodeId needs_whole;
    for (const auto& [factor, weights] : dimensions_.weight_factors()) {
      if (!weights.is_passed()) continue;
      const NodeId whole = tensors_.factors().limit(factor, FactorLimit::kWhole);
      NodeId part = tensors_.factors().limit(factor, FactorLimit::kPart);
      for (const TensorFactors::Shift& shift : tensors_.shifts()) {
        const bool is_of = dimensions_.Finest({&shift.longer, 1}).contains(factor) ||
                           dimensions_.Finest({&shift.shorter, 1}).contains(factor);
        if (is_of && !part) part = shift.by;
      }
      if (whole || part) {
        needs_whole = whole ? whole : part;
      } else {
        can_be.insert(factor);
      }
    }
    // Ranks have neighbouring parts of a dimension: its slowest factor is divided.
    for (const std::vector<FactorId>& dim : dimensions_.weight_dims()) {
      const auto first =
          std::ranges::find_if(dim, [&](FactorId factor) { return can_be.contains(factor); });
      for (auto other = first; other != dim.end(); ++other) {
        if (*other != *first) can_be.erase(*other);
      }
    }
    std::vector<std::pair<FactorId, const WeightFactor*>> candidates;
    for (const FactorId factor : can_be) {
      candidates.emplace_back(factor, &dimensions_.weight_factors().at(factor));
    }
    std::ranges::sort(candidates, {}, [](const auto& one) {
      return std::tuple(one.second->weights.size(), *one.second->made, one.first);
    });
    std::set<StorageVersion> divided;
    std::vector<std::pair<FactorId, uint32_t>> chosen;  // with the position of the first product
    for (const auto& [factor, weights] : candidates) {
      const bool is_free = std::ranges::none_of(
          weights->weights, [&](StorageVersion weight) { return divided.contains(weight); });
      if (!is_free) continue;
      if (const NodeId unknown = tensors_.factors().limit(factor, FactorLimit::kUnknown)) {
        return UnknownOperator(unknown, tensors_.factors().size(factor));
      }
      divided.insert(weights->weights.begin(), weights->weights.end());
      chosen.emplace_back(factor, *weights->made);
    }
    if (chosen.empty()) {
      return BadInput(
          "found no dimension that a product with one weight makes and a product with the next one "
          "sums over, such as the hidden dimension of an MLP or the heads of an attention" +
          (needs_whole
               ? fmt::format("; {} needs the only ones whole", dimensions_.PlaceOf(needs_whole))
               : std::string()));
    }
    ETUDE_RETURN_IF_ERROR(CheckRanks(chosen));
    for (const auto& [factor, position] : chosen) {
      const int64_t size = tensors_.factors().size(factor);
      sizes_[factor] = size / ranks_;
      ++result_.dimensions[size];
    }
    return {};
  }

  Status CheckRanks(std::span<const std::pair<FactorId, uint32_t>> chosen) const {
    int64_t common = 0;
    std::optional<std::pair<FactorId, uint32_t>> odd;
    for (const auto& one : chosen) {
      const int64_t size = tensors_.factors().size(one.first);
      common = std::gcd(common, size);
      if (!odd && size % ranks_ != 0) odd = one;
    }
    if (!odd) return {};
    std::vector<std::string> nearest;
    for (int64_t ranks = ranks_ - 1; ranks >= 1 && nearest.empty(); --ranks) {
      if (common % ranks == 0) nearest.push_back(fmt::format("--tp {}", ranks));
    }
    for (int64_t ranks = ranks_ + 1; ranks <= common; ++ranks) {
      if (common % ranks != 0) continue;
      nearest.push_back(fmt::format("--tp {}", ranks));
      break;
    }
    return BadInput(fmt::format(
        "found a dimension of {} between two weights, the first at {}, expected a multiple of the "
        "{} tensor-parallel ranks; nearest possible: {}",
        tensors_.factors().size(odd->first), dimensions_.PlaceOf(step_.nodes()[odd->second]),
        ranks_, fmt::join(nearest, ", ")));
  }

  bool IsDivided(std::span<const FactorId> factors) const {
    const std::vector<FactorId> finest = tensors_.factors().Expand(factors);
    return std::ranges::any_of(finest, [&](FactorId factor) { return sizes_.contains(factor); });
  }

  // Memory in which each rank has a part of a sum.
  struct Addend {
    NodeId made;
    TensorId tensor;
    bool is_norm = false;  // norms, of which the sum is that of their powers
  };

  // Returns the part of a sum in a tensor's memory; nullptr if it has none.
  const Addend* AddendOf(const DataFlow::Use& use) const {
    const auto found = use.version ? addends_.find(use.version) : addends_.end();
    return found == addends_.end() ? nullptr : &found->second;
  }

  // Finds the sums of parts by following them through operators that are sums themselves.
  void FindReductions() {
    dimensions_.ForEachOperator([&](uint32_t position, NodeId node) {
      const OperatorRole& role = roles_.at(position);
      if (role.use == ValueUse::kNothing) return;
      const auto inputs = flow_.inputs(node);
      if (role.use == ValueUse::kUnknown && Calls(node)) {
        // The operators that it calls follow; it may also read an addend itself.
        for (const DataFlow::Use& use : inputs) {
          const Addend* const addend = AddendOf(use);
          if (addend == nullptr || IsReadBelow(node, use.version)) continue;
          Reduce(*addend, node, use.version);
          addends_.erase(use.version);
        }
        return;
      }
      const bool passes = PassesOn(role, node);
      bool has_addends = false;
      bool has_norms = role.use == ValueUse::kNorm;
      for (const DataFlow::Use& use : inputs) {
        const Addend* const addend = AddendOf(use);
        if (addend == nullptr) continue;
        if (passes) {
          has_addends = true;
          has_norms = has_norms || addend->is_norm;
        } else {
          Reduce(*addend, node, use.version);
          addends_.erase(use.version);
        }
      }
      const auto outputs = flow_.outputs(node);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].version) continue;
        const bool is_summed = i < role.summed.size() && IsDivided(role.summed[i]);
        addends_.erase(outputs[i].version);
        if (!is_summed && !has_addends) continue;
        addends_[outputs[i].version] = {
            .made = node, .tensor = outputs[i].tensor, .is_norm = has_norms};
      }
    });
  }

  bool Calls(NodeId node) const {
    return std::ranges::any_of(trace_.children(node),
                               [&](NodeId child) { return IsCall(trace_, child); });
  }

  // Returns whether an operator that `node` calls reads the memory and makes something else of it.
  bool IsReadBelow(NodeId node, StorageVersion version) const {
    const auto is_other = [&](const DataFlow::Use& use) { return use.version != version; };
    std::vector<NodeId> open = {node};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (Calls(at)) {
        const auto children = trace_.children(at);
        open.insert(open.end(), children.begin(), children.end());
      } else if (!std::ranges::all_of(flow_.inputs(at), is_other) &&
                 std::ranges::any_of(flow_.outputs(at), is_other)) {
        return true;
      }
    }
    return false;
  }

  // Returns whether an operator's results are parts of sums if its arguments are.
  bool PassesOn(const OperatorRole& role, NodeId node) const {
    const std::string_view name = trace_.name(node);
    auto inputs = flow_.inputs(node);
    if (name == "aten::copy_" && inputs.size() > 1) inputs = inputs.subspan(1);
    const bool has_norms = std::ranges::any_of(inputs, [&](const DataFlow::Use& use) {
      const Addend* const addend = AddendOf(use);
      return addend != nullptr && addend->is_norm;
    });
    if (has_norms) {
      return role.use == ValueUse::kNorm || name == "aten::stack" || name == "aten::cat";
    }
    if (role.use == ValueUse::kSum) return true;
    return role.use == ValueUse::kLinear &&
           std::ranges::all_of(inputs, [&](const DataFlow::Use& use) {
             const bool is_number = trace_.tensor(use.tensor).numel == 1 && inputs.size() > 1;
             return AddendOf(use) != nullptr || !use.version || is_number;
           });
  }

  void Reduce(const Addend& addend, NodeId read, StorageVersion version) {
    const TensorUse& use = trace_.tensor(addend.tensor);
    const auto layout =
        tensors_.Resized({.tensor = addend.tensor, .version = version}, addend.made, sizes_);
    const int64_t elements = layout ? layout->numel : use.numel;
    result_.reductions.push_back({.made = addend.made,
                                  .read = read,
                                  .bytes = Bytes{elements * use.element_bytes},
                                  .dtype = DTypeOf(trace_, use),
                                  .in_backward = IsInBackward(trace_, addend.made)});
  }

  // Counts weights, and the operations of matrix products that are divided.
  void CountProducts(const Trace& resized) {
    const auto costs = OperatorCosts(trace_);
    const auto wanted = OperatorCosts(resized);
    double all = 0;
    double divided = 0;
    ForEachNode(trace_, [&](NodeId node) {
      const auto& cost = costs[node.index()];
      if (!cost || cost->done_below || !IsMatrixOperator(trace_.name(node))) return;
      all += static_cast<double>(cost->ops);
      const auto& after = wanted[node.index()];
      ++result_.products[ProductOf(resized, node)];
      if (after && after->ops < cost->ops) divided += static_cast<double>(cost->ops);
    });
    result_.divided_share = all > 0 ? divided / all : 0;
    std::set<StorageVersion> weights;
    dimensions_.ForEachOperator([&](uint32_t position, NodeId node) {
      const OperatorRole& role = roles_.at(position);
      if (role.use != ValueUse::kProduct || IsInBackward(trace_, node)) return;
      const auto weight = dimensions_.WeightOf(role, node);
      if (!weight || !weights.insert(weight->version).second) return;
      ++result_.weights;
      const bool is_divided = std::ranges::any_of(
          tensors_.Of(*weight, node), [&](const auto& factors) { return IsDivided(factors); });
      if (is_divided) {
        ++result_.divided;
      } else {
        const auto shape = trace_.ints(trace_.tensor(weight->tensor).shape);
        result_.whole.push_back(
            fmt::format("{} with a weight of {}", trace_.name(node), fmt::join(shape, " x ")));
      }
    });
  }

  // Returns the name and the sizes of the arguments of a product: "aten::mm 16 x 8, 8 x 32".
  static std::string ProductOf(const Trace& trace, NodeId node) {
    std::vector<std::string> sizes;
    ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
      const auto shape = trace.ints(trace.tensor(id).shape);
      if (shape.size() > 1) sizes.push_back(fmt::format("{}", fmt::join(shape, " x ")));
    });
    return fmt::format("{} {}", trace.name(node), fmt::join(sizes, ", "));
  }

  const Trace& trace_;
  int64_t ranks_;
  StepDimensions dimensions_;
  const RecordedStep& step_;
  const DataFlow& flow_;
  TensorFactors& tensors_;
  const OperatorRoles& roles_;
  TensorFactors::Sizes sizes_;
  std::unordered_map<StorageVersion, Addend> addends_;
  TensorParallelStep result_;
};

}  // namespace

Result<TensorParallelStep> DivideAmongTensorRanks(const Trace& trace, int64_t ranks,
                                                  const Limits& limits) {
  return Divider(trace, ranks).Run(limits);
}

}  // namespace etude
