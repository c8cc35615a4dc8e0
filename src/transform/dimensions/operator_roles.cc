#include "src/transform/dimensions/operator_roles.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "src/run/step/tensor_shape.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

enum class Rule : uint8_t {
  kElementwise,      // the same elements, with broadcasting
  kAdd,              // likewise, and a sum of its arguments if both are tensors
  kCopy,             // likewise, and the same values
  kScale,            // likewise, and linear if only one argument is no number
  kLike,             // makes a tensor of the same sizes, and reads no values
  kNothing,          // relates no dimensions, and reads no values
  kRead,             // relates no dimensions, such as that of a single number
  kProduct,          // `a`: left factor; the right one follows, and an addend may precede
  kLinearLayer,      // input, weight of outputs by inputs, and bias
  kConvolution,      // image and weight: [batch, channels, ...] by [results, channels, ...]
  kConvolutionBack,  // the same after a gradient
  kImage,            // batch and channels stay; other dimensions follow other rules
  kImageNorm,        // likewise, with statistics of each channel
  kAlong,            // element-wise, but needs the whole dimension whose number is argument `a`
  kAlongAll,         // element-wise, but needs all dimensions whole
  kNorm,             // a norm of the last dimensions, whose sizes are argument `a`
  kNormBack,         // the same after a gradient
  kAttention,        // `a`: query; key and value follow: [batch, heads, length, depth]
  kAttentionBack,    // the same after a gradient; `b`: the forward result
  kLookup,           // rows of argument 0 by the indices of argument 1
  kLookupBack,       // gradients of rows by indices
  kSelect,           // rows of argument 0 in dimension `a` by the indices of argument 2
  kJoin,             // a list of tensors along the dimension whose number is argument `a`
  kStack,            // likewise along a new dimension
  kSum,              // sum over the dimensions of argument `a`, or all
  kPowerSum,         // norm over them
  kReduce,           // anything else over them
  kLoss,             // classes by targets: needs all dimensions whole
  kIndex,            // places by a list of indices for each dimension, or all of a dimension
  kGather,           // places of argument 0 in dimension `a` by indices of the result's sizes
  kPlaces,           // takes or sets single places of its tensors
  kLists,            // element-wise for each place of its lists
  kListNorms,        // a norm of each tensor of a list
};

struct RuleRow {
  std::string_view name;  // after "aten::", without a final "_"
  Rule rule;
  uint8_t a = 0;
  uint8_t b = 0;
};

constexpr auto kRules = std::to_array<RuleRow>({
    {"add", Rule::kAdd},
    {"sub", Rule::kAdd},
    {"neg", Rule::kCopy},
    {"clone", Rule::kCopy},
    {"copy", Rule::kCopy},
    {"_to_copy", Rule::kCopy},
    {"contiguous", Rule::kCopy},
    {"mul", Rule::kScale},
    {"div", Rule::kScale},
    {"abs", Rule::kElementwise},
    {"addcdiv", Rule::kElementwise},
    {"addcmul", Rule::kElementwise},
    {"bitwise_and", Rule::kElementwise},
    {"bitwise_not", Rule::kElementwise},
    {"bitwise_or", Rule::kElementwise},
    {"ceil", Rule::kElementwise},
    {"clamp", Rule::kElementwise},
    {"clamp_max", Rule::kElementwise},
    {"clamp_min", Rule::kElementwise},
    {"cos", Rule::kElementwise},
    {"elu", Rule::kElementwise},
    {"elu_backward", Rule::kElementwise},
    {"eq", Rule::kElementwise},
    {"erf", Rule::kElementwise},
    {"exp", Rule::kElementwise},
    {"expm1", Rule::kElementwise},
    {"floor", Rule::kElementwise},
    {"floor_divide", Rule::kElementwise},
    {"fmod", Rule::kElementwise},
    {"ge", Rule::kElementwise},
    {"gelu", Rule::kElementwise},
    {"gelu_backward", Rule::kElementwise},
    {"gt", Rule::kElementwise},
    {"hardsigmoid", Rule::kElementwise},
    {"hardsigmoid_backward", Rule::kElementwise},
    {"hardswish", Rule::kElementwise},
    {"hardswish_backward", Rule::kElementwise},
    {"hardtanh", Rule::kElementwise},
    {"hardtanh_backward", Rule::kElementwise},
    {"isfinite", Rule::kElementwise},
    {"isinf", Rule::kElementwise},
    {"isnan", Rule::kElementwise},
    {"isneginf", Rule::kElementwise},
    {"le", Rule::kElementwise},
    {"leaky_relu", Rule::kElementwise},
    {"leaky_relu_backward", Rule::kElementwise},
    {"lerp", Rule::kElementwise},
    {"log", Rule::kElementwise},
    {"log1p", Rule::kElementwise},
    {"log_sigmoid_backward", Rule::kElementwise},
    {"log_sigmoid_forward", Rule::kElementwise},
    {"logical_and", Rule::kElementwise},
    {"logical_not", Rule::kElementwise},
    {"logical_or", Rule::kElementwise},
    {"lt", Rule::kElementwise},
    {"masked_fill", Rule::kElementwise},
    {"maximum", Rule::kElementwise},
    {"minimum", Rule::kElementwise},
    {"mish", Rule::kElementwise},
    {"mish_backward", Rule::kElementwise},
    {"nan_to_num", Rule::kElementwise},
    {"native_dropout", Rule::kElementwise},
    {"native_dropout_backward", Rule::kElementwise},
    {"ne", Rule::kElementwise},
    {"pow", Rule::kElementwise},
    {"reciprocal", Rule::kElementwise},
    {"relu", Rule::kElementwise},
    {"remainder", Rule::kElementwise},
    {"round", Rule::kElementwise},
    {"rsqrt", Rule::kElementwise},
    {"rsub", Rule::kElementwise},
    {"sgn", Rule::kElementwise},
    {"sigmoid", Rule::kElementwise},
    {"sigmoid_backward", Rule::kElementwise},
    {"sign", Rule::kElementwise},
    {"silu", Rule::kElementwise},
    {"silu_backward", Rule::kElementwise},
    {"sin", Rule::kElementwise},
    {"softplus", Rule::kElementwise},
    {"softplus_backward", Rule::kElementwise},
    {"sqrt", Rule::kElementwise},
    {"square", Rule::kElementwise},
    {"tanh", Rule::kElementwise},
    {"tanh_backward", Rule::kElementwise},
    {"threshold", Rule::kElementwise},
    {"threshold_backward", Rule::kElementwise},
    {"where", Rule::kElementwise},
    {"bernoulli", Rule::kLike},
    {"empty_like", Rule::kLike},
    {"expand", Rule::kLike},
    {"full_like", Rule::kLike},
    {"ones_like", Rule::kLike},
    {"rand_like", Rule::kLike},
    {"randn_like", Rule::kLike},
    {"zeros_like", Rule::kLike},
    {"arange", Rule::kNothing},
    {"as_strided", Rule::kNothing},
    {"detach", Rule::kNothing},
    {"empty", Rule::kNothing},
    {"empty_strided", Rule::kNothing},
    {"exponential", Rule::kNothing},
    {"fill", Rule::kNothing},
    {"full", Rule::kNothing},
    {"is_nonzero", Rule::kRead},
    {"item", Rule::kRead},
    {"_local_scalar_dense", Rule::kRead},
    {"new_empty", Rule::kNothing},
    {"new_empty_strided", Rule::kNothing},
    {"new_full", Rule::kNothing},
    {"new_ones", Rule::kNothing},
    {"new_zeros", Rule::kNothing},
    {"normal", Rule::kNothing},
    {"ones", Rule::kNothing},
    {"lift_fresh", Rule::kNothing},
    {"rand", Rule::kNothing},
    {"randint", Rule::kNothing},
    {"randn", Rule::kNothing},
    {"random", Rule::kNothing},
    {"requires_grad", Rule::kNothing},
    {"resize", Rule::kNothing},
    {"scalar_tensor", Rule::kNothing},
    {"set", Rule::kNothing},
    {"squeeze", Rule::kNothing},
    {"t", Rule::kNothing},
    {"transpose", Rule::kNothing},
    {"uniform", Rule::kNothing},
    {"unsqueeze", Rule::kNothing},
    {"zero", Rule::kNothing},
    {"zeros", Rule::kNothing},
    {"mm", Rule::kProduct, 0},
    {"bmm", Rule::kProduct, 0},
    {"addmm", Rule::kProduct, 1},
    {"_addmm_activation", Rule::kProduct, 1},
    {"baddbmm", Rule::kProduct, 1},
    {"linear", Rule::kLinearLayer},
    {"convolution", Rule::kConvolution},
    {"_convolution", Rule::kConvolution},
    {"convolution_backward", Rule::kConvolutionBack},
    {"max_pool2d_with_indices", Rule::kImage},
    {"max_pool2d_with_indices_backward", Rule::kImage},
    {"avg_pool2d", Rule::kImage},
    {"avg_pool2d_backward", Rule::kImage},
    {"_adaptive_avg_pool2d", Rule::kImage},
    {"_adaptive_avg_pool2d_backward", Rule::kImage},
    {"native_batch_norm", Rule::kImageNorm},
    {"_native_batch_norm_legit", Rule::kImageNorm},
    {"cudnn_batch_norm", Rule::kImageNorm},
    {"native_batch_norm_backward", Rule::kImageNorm},
    {"cudnn_batch_norm_backward", Rule::kImageNorm},
    {"_softmax", Rule::kAlong, 1},
    {"_log_softmax", Rule::kAlong, 1},
    {"_softmax_backward_data", Rule::kAlong, 2},
    {"_log_softmax_backward_data", Rule::kAlong, 2},
    {"cumsum", Rule::kAlong, 1},
    {"flip", Rule::kAlongAll},
    {"roll", Rule::kAlongAll},
    {"tril", Rule::kAlongAll},
    {"triu", Rule::kAlongAll},
    {"native_layer_norm", Rule::kNorm, 1},
    {"_fused_rms_norm", Rule::kNorm, 1},
    {"native_layer_norm_backward", Rule::kNormBack, 2},
    {"_fused_rms_norm_backward", Rule::kNormBack, 2},
    {"_scaled_dot_product_flash_attention", Rule::kAttention, 0},
    {"_scaled_dot_product_flash_attention_for_cpu", Rule::kAttention, 0},
    {"_scaled_dot_product_efficient_attention", Rule::kAttention, 0},
    {"_scaled_dot_product_cudnn_attention", Rule::kAttention, 0},
    {"_scaled_dot_product_flash_attention_backward", Rule::kAttentionBack, 1, 4},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", Rule::kAttentionBack, 1, 4},
    {"_scaled_dot_product_efficient_attention_backward", Rule::kAttentionBack, 1, 5},
    {"_scaled_dot_product_cudnn_attention_backward", Rule::kAttentionBack, 1, 4},
    {"embedding", Rule::kLookup},
    {"embedding_dense_backward", Rule::kLookupBack},
    {"index_select", Rule::kSelect, 1},
    {"cat", Rule::kJoin, 1},
    {"stack", Rule::kStack, 1},
    {"sum", Rule::kSum, 1},
    {"mean", Rule::kSum, 1},
    {"linalg_vector_norm", Rule::kPowerSum, 2},
    {"norm", Rule::kPowerSum, 2},
    {"all", Rule::kReduce, 1},
    {"amax", Rule::kReduce, 1},
    {"amin", Rule::kReduce, 1},
    {"any", Rule::kReduce, 1},
    {"argmax", Rule::kReduce, 1},
    {"argmin", Rule::kReduce, 1},
    {"logsumexp", Rule::kReduce, 1},
    {"max", Rule::kReduce, 1},
    {"min", Rule::kReduce, 1},
    {"std", Rule::kReduce, 1},
    {"var", Rule::kReduce, 1},
    {"var_mean", Rule::kReduce, 1},
    {"nll_loss_forward", Rule::kLoss, 0},
    {"nll_loss_backward", Rule::kLoss, 1},
    {"mse_loss", Rule::kAlongAll},
    {"mse_loss_backward", Rule::kAlongAll},
    {"gather", Rule::kGather, 1},
    {"index", Rule::kIndex},
    {"index_put", Rule::kIndex},
    {"_index_put_impl", Rule::kIndex},
    {"multinomial", Rule::kPlaces},
    {"nonzero", Rule::kPlaces},
    {"one_hot", Rule::kPlaces},
    {"randperm", Rule::kPlaces},
    {"scatter", Rule::kPlaces},
    {"scatter_add", Rule::kPlaces},
    {"sort", Rule::kPlaces},
    {"topk", Rule::kPlaces},
    {"_foreach_norm", Rule::kListNorms},
    {"_fused_adagrad", Rule::kLists},
    {"_fused_adam", Rule::kLists},
    {"_fused_adamw", Rule::kLists},
    {"_fused_sgd", Rule::kLists},
    {"_amp_foreach_non_finite_check_and_unscale", Rule::kLists},
});
constexpr RuleRow kListRow = {"", Rule::kLists};

// Returns the rule of an operator; nullptr if it has none.
const RuleRow* RuleOf(std::string_view name) {
  constexpr std::string_view kAten = "aten::";
  if (!name.starts_with(kAten)) return nullptr;
  name.remove_prefix(kAten.size());
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  const auto* row = std::ranges::find(kRules, name, &RuleRow::name);
  if (row != kRules.end()) return row;
  return name.starts_with("_foreach_") ? &kListRow : nullptr;
}

}  // namespace

// Applies the rules to the operators of a step.
class OperatorRoles::Applier {
 public:
  Applier(const RecordedStep& step, const DataFlow& flow, TensorFactors& tensors,
          OperatorRoles& roles)
      : step_(step),
        trace_(step.trace()),
        flow_(flow),
        tensors_(tensors),
        factors_(tensors.factors()),
        roles_(roles) {}

  void Run() {
    const auto count = static_cast<uint32_t>(step_.nodes().size());
    roles_.roles_.resize(count);
    roles_.is_inner_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (const NodeId around = step_.enclosing_operator(i)) {
        const uint32_t caller = step_.position(around);
        roles_.is_inner_[i] = roles_.is_inner_[caller] || Row(around) != nullptr;
      }
      if (!step_.is_operator(i)) continue;
      node_ = step_.nodes()[i];
      role_ = &roles_.roles_[i];
      if (const RuleRow* row = Row(node_)) {
        Collect();
        Apply(*row);
      } else if (!roles_.is_inner_[i] && !IsDescribed()) {
        Collect();
        LimitAll(FactorLimit::kUnknown);
      }
    }
  }

 private:
  using Dims = DimensionFactors;

  // A tensor with the sizes and factors of its dimensions.
  struct Tensor {
    std::vector<int64_t> sizes;
    Dims dims;
    size_t rank() const { return sizes.size(); }
  };
  // An argument: a tensor or a list of tensors. Others have none.
  struct Argument {
    const Value* value = nullptr;
    size_t first = 0;  // among the tensors of all arguments
    std::vector<Tensor> tensors;
  };

  const RuleRow* Row(NodeId node) {
    const auto [known, is_new] = rows_.try_emplace(trace_.name_id(node));
    if (is_new) known->second = RuleOf(trace_.name(node));
    return known->second;
  }

  // Returns whether an operator without a rule only makes views, or leaves all work to those that
  // it calls.
  bool IsDescribed() {
    const auto inputs = flow_.inputs(node_);
    const auto outputs = flow_.outputs(node_);
    const bool calls = std::ranges::any_of(trace_.children(node_), [&](NodeId child) {
      const uint32_t position = step_.position(child);
      return position != RecordedStep::kNowhere && step_.is_operator(position);
    });
    if (outputs.empty() && !calls) {
      return std::ranges::all_of(
          inputs, [&](const DataFlow::Use& use) { return trace_.tensor(use.tensor).numel <= 1; });
    }
    for (const DataFlow::Use& output : outputs) {
      if (!output.version) continue;
      const auto of_same = [&](const DataFlow::Use& input) {
        return input.version == output.version;
      };
      const bool is_view = std::ranges::any_of(inputs, of_same);
      if (!is_view && flow_.version(output.version).origin == node_) return false;
      const bool is_in_place = std::ranges::any_of(inputs, [&](const DataFlow::Use& input) {
        return of_same(input) &&
               trace_.tensor(input.tensor).tensor == trace_.tensor(output.tensor).tensor;
      });
      if (is_in_place && !calls && trace_.name(node_).ends_with('_')) return false;
    }
    role_->use = ValueUse::kNothing;
    return true;
  }

  Tensor TensorOf(const DataFlow::Use& use) {
    const Dims& dims = tensors_.Of(use, node_);
    const auto sizes = trace_.ints(trace_.tensor(use.tensor).shape);
    if (dims.size() != sizes.size()) return {};
    return {.sizes = {sizes.begin(), sizes.end()}, .dims = dims};
  }

  void Collect() {
    arguments_.clear();
    results_.clear();
    const auto uses = flow_.inputs(node_);
    size_t next = 0;
    for (const Value& value : trace_.inputs(node_)) {
      Argument& argument = arguments_.emplace_back();
      argument.value = &value;
      argument.first = next;
      ForEachTensor(trace_, {&value, 1}, [&](TensorId) {
        if (next < uses.size()) argument.tensors.push_back(TensorOf(uses[next]));
        ++next;
      });
    }
    for (const DataFlow::Use& use : flow_.outputs(node_)) results_.push_back(TensorOf(use));
    role_->summed.resize(results_.size());
  }

  // Returns an argument that is a tensor; one without dimensions if it is none.
  const Tensor& In(size_t index) const {
    static const Tensor none;
    const bool is_tensor = index < arguments_.size() &&
                           arguments_[index].value->kind == ValueKind::kTensor &&
                           !arguments_[index].tensors.empty();
    return is_tensor ? arguments_[index].tensors.front() : none;
  }
  const Tensor& Out(size_t index) const {
    static const Tensor none;
    return index < results_.size() ? results_[index] : none;
  }
  std::optional<int64_t> IntOf(size_t index) const {
    if (index >= arguments_.size() || arguments_[index].value->kind != ValueKind::kInt) {
      return std::nullopt;
    }
    return arguments_[index].value->as_int();
  }
  std::vector<int64_t> IntsOf(size_t index) const {
    std::vector<int64_t> ints;
    if (index >= arguments_.size() || arguments_[index].value->kind != ValueKind::kList)
      return ints;
    for (const Value& value : trace_.values(arguments_[index].value->as_list())) {
      if (value.kind == ValueKind::kInt) ints.push_back(value.as_int());
    }
    return ints;
  }

  // Calls `fn` for each tensor among arguments and results.
  template <typename Fn>
  void ForEach(Fn fn) const {
    for (const Argument& argument : arguments_) {
      for (const Tensor& tensor : argument.tensors) fn(tensor);
    }
    for (const Tensor& tensor : results_) fn(tensor);
  }

  void Limit(const std::vector<FactorId>& factors, FactorLimit limit = FactorLimit::kWhole) {
    factors_.Limit(factors, limit, node_);
  }
  void LimitAll(FactorLimit limit) {
    ForEach([&](const Tensor& tensor) {
      for (const auto& factors : tensor.dims) Limit(factors, limit);
    });
  }

  void Unite(const std::vector<FactorId>& a, const std::vector<FactorId>& b) {
    if (factors_.Unite(a, b)) return;
    Limit(a, FactorLimit::kUnknown);
    Limit(b, FactorLimit::kUnknown);
  }
  // Unites a dimension of two tensors. A size of 1 is repeated for the other's.
  void Unite(const Tensor& a, size_t of_a, const Tensor& b, size_t of_b) {
    if (of_a >= a.rank() || of_b >= b.rank()) return;
    if (a.sizes[of_a] == 1 || b.sizes[of_b] == 1) return;
    Unite(a.dims[of_a], b.dims[of_b]);
  }
  // Unites dimensions from the last one on.
  void Broadcast(const Tensor& a, const Tensor& b) {
    for (size_t i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
      Unite(a, a.rank() - i, b, b.rank() - i);
    }
  }
  // Unites the first dimensions of two tensors.
  void UniteFirst(const Tensor& a, const Tensor& b, size_t count) {
    for (size_t i = 0; i < std::min({count, a.rank(), b.rank()}); ++i) Unite(a, i, b, i);
  }

  // Returns the tensor with most dimensions, results first.
  const Tensor& Widest() const {
    const Tensor* widest = &Out(0);
    const auto compare = [&](const Tensor& tensor) {
      if (tensor.rank() > widest->rank()) widest = &tensor;
    };
    for (const Tensor& tensor : results_) compare(tensor);
    if (results_.empty()) ForEach(compare);
    return *widest;
  }
  void Elementwise() {
    const Tensor& widest = Widest();
    ForEach([&](const Tensor& tensor) {
      if (&tensor != &widest) Broadcast(widest, tensor);
    });
  }

  std::optional<size_t> DimOf(int64_t dim, size_t rank) const {
    if (dim < 0) dim += static_cast<int64_t>(rank);
    if (dim < 0 || dim >= static_cast<int64_t>(rank)) return std::nullopt;
    return static_cast<size_t>(dim);
  }

  void Apply(const RuleRow& row) {
    role_->use = ValueUse::kOther;
    // A product without results ended by an exception: that of activation checkpointing, once all
    // wanted activations are computed again. Nothing uses what it would make.
    if (results_.empty() && (row.rule == Rule::kProduct || row.rule == Rule::kLinearLayer)) {
      role_->use = ValueUse::kNothing;
      return UniteSummed(row);
    }
    switch (row.rule) {
      case Rule::kElementwise: return Elementwise();
      case Rule::kAdd:
        if (In(1).rank() > 0) role_->use = ValueUse::kLinear;
        return Elementwise();
      case Rule::kCopy: role_->use = ValueUse::kLinear; return Elementwise();
      case Rule::kScale:
        if (ScalesOne()) role_->use = ValueUse::kLinear;
        return Elementwise();
      case Rule::kLike: role_->use = ValueUse::kNothing; return Elementwise();
      case Rule::kNothing: role_->use = ValueUse::kNothing; return;
      case Rule::kRead: return;
      case Rule::kProduct: return Product(row.a);
      case Rule::kLinearLayer: return LinearLayer();
      case Rule::kConvolution: return Convolution(In(0), In(1), Out(0));
      case Rule::kConvolutionBack: return ConvolutionBack();
      case Rule::kImage: return Image(/*is_normed=*/false);
      case Rule::kImageNorm: return Image(/*is_normed=*/true);
      case Rule::kAlong: return Along(row.a);
      case Rule::kAlongAll: Elementwise(); return LimitAll(FactorLimit::kWhole);
      case Rule::kNorm: return Norm(row.a);
      case Rule::kNormBack: return NormBack(row.a);
      case Rule::kAttention: return Attention(row.a, std::nullopt);
      case Rule::kAttentionBack: return Attention(row.a, row.b);
      case Rule::kLookup: return Lookup();
      case Rule::kLookupBack: return LookupBack();
      case Rule::kSelect: return Select(row.a);
      case Rule::kJoin: role_->use = ValueUse::kLinear; return Join(row.a);
      case Rule::kStack: role_->use = ValueUse::kLinear; return Stack(row.a);
      case Rule::kSum: role_->use = ValueUse::kSum; return Reduce(row);
      case Rule::kPowerSum: role_->use = ValueUse::kNorm; return Reduce(row);
      case Rule::kReduce: return Reduce(row);
      case Rule::kLoss:
        UniteFirst(In(row.a), In(row.a + 1), 1);
        if (Out(0).rank() == In(row.a).rank()) UniteFirst(In(row.a), Out(0), 2);
        return LimitAll(FactorLimit::kWhole);
      case Rule::kIndex: return Index();
      case Rule::kGather: return Gather(row.a);
      case Rule::kPlaces: return LimitAll(FactorLimit::kPart);
      case Rule::kLists: return Lists();
      case Rule::kListNorms: role_->use = ValueUse::kNorm; return ListNorms();
    }
  }

  // Unites the dimensions over which a product or a linear layer sums.
  void UniteSummed(const RuleRow& row) {
    const size_t left = row.rule == Rule::kProduct ? row.a : 0;
    const Tensor& a = In(left);
    const Tensor& b = In(left + 1);
    if (a.rank() == 0 || b.rank() < 2) return;
    Unite(a, a.rank() - 1, b, row.rule == Rule::kProduct ? b.rank() - 2 : 1);
  }

  // Returns whether all tensors but one are single numbers.
  bool ScalesOne() const {
    size_t others = 0;
    for (const Argument& argument : arguments_) {
      for (const Tensor& tensor : argument.tensors) others += tensor.rank() == 0 ? 0 : 1;
    }
    return others <= 1;
  }

  void Product(size_t left) {
    const Tensor& a = In(left);
    const Tensor& b = In(left + 1);
    const Tensor& out = Out(0);
    const size_t rank = out.rank();
    if (rank < 2 || a.rank() != rank || b.rank() != rank) return LimitAll(FactorLimit::kUnknown);
    UniteFirst(a, b, rank - 2);
    UniteFirst(a, out, rank - 1);
    Unite(b, rank - 1, out, rank - 1);
    Unite(a, rank - 1, b, rank - 2);
    if (left > 0) Broadcast(out, In(left - 1));
    SetProduct(left, left + 1, a.dims[rank - 1]);
  }
  void LinearLayer() {
    const Tensor& input = In(0);
    const Tensor& weight = In(1);
    const Tensor& out = Out(0);
    if (weight.rank() != 2 || input.rank() == 0 || out.rank() != input.rank()) {
      return LimitAll(FactorLimit::kUnknown);
    }
    const size_t last = out.rank() - 1;
    UniteFirst(input, out, last);
    Unite(input, last, weight, 1);
    Unite(weight, 0, out, last);
    Broadcast(out, In(2));
    SetProduct(0, 1, input.dims[last]);
  }
  void SetProduct(size_t left, size_t right, const std::vector<FactorId>& summed) {
    role_->use = ValueUse::kProduct;
    role_->left = static_cast<uint32_t>(arguments_[left].first);
    role_->right = static_cast<uint32_t>(arguments_[right].first);
    role_->summed[0] = summed;
  }

  // The other dimensions of images follow from strides and paddings.
  void LimitImage(const Tensor& image) {
    for (size_t i = 2; i < image.rank(); ++i) Limit(image.dims[i], FactorLimit::kPart);
  }
  // Unites the dimensions of a convolution, whose result is `out`.
  void Convolution(const Tensor& image, const Tensor& weight, const Tensor& out) {
    const bool is_known = image.rank() > 2 && weight.rank() == image.rank() &&
                          out.rank() == image.rank() && image.sizes[1] == weight.sizes[1] &&
                          out.sizes[1] == weight.sizes[0] && !IsTransposed();
    if (!is_known) {
      Unite(image, 0, out, 0);
      for (const Tensor* tensor : {&image, &weight, &out}) {
        const size_t first = tensor == &weight ? 0 : 1;
        for (size_t i = first; i < tensor->rank(); ++i) {
          Limit(tensor->dims[i], FactorLimit::kUnknown);
        }
      }
      return;
    }
    Unite(image, 0, out, 0);
    Unite(image, 1, weight, 1);
    Unite(weight, 0, out, 1);
    for (const Tensor* tensor : {&image, &weight, &out}) LimitImage(*tensor);
    if (&out != &Out(0)) return;
    Unite(In(2), 0, out, 1);
    SetProduct(0, 1, image.dims[1]);
  }
  void ConvolutionBack() {
    const Tensor& gradient = In(0);
    Convolution(In(1), In(2), gradient);
    Broadcast(In(1), Out(0));
    Broadcast(In(2), Out(1));
    Unite(gradient, 1, Out(2), 0);
    const bool has_weight = In(2).rank() > 0 && !results_.empty();
    if (has_weight && gradient.rank() > 1 && gradient.sizes[1] == In(2).sizes[0]) {
      SetProduct(0, 2, gradient.dims[1]);
    }
  }
  // The argument before the output padding is the first boolean.
  bool IsTransposed() const {
    for (const Argument& argument : arguments_) {
      if (argument.value->kind == ValueKind::kBool) return argument.value->as_bool();
    }
    return false;
  }
  void Image(bool is_normed) {
    const Tensor& image = Out(0);
    if (image.rank() < 2) return LimitAll(FactorLimit::kUnknown);
    ForEach([&](const Tensor& tensor) {
      if (tensor.rank() == image.rank() && is_normed) UniteFirst(tensor, image, image.rank());
      if (tensor.rank() == image.rank() && !is_normed) UniteFirst(tensor, image, 2);
      if (!is_normed) LimitImage(tensor);
      const bool is_of_channels =
          is_normed && tensor.rank() == 1 && tensor.sizes[0] == image.sizes[1];
      if (is_of_channels) Unite(tensor, 0, image, 1);
    });
    if (!is_normed) return;
    for (size_t i = 0; i < image.rank(); ++i) {
      if (i != 1) Limit(image.dims[i]);
    }
  }

  void Along(size_t argument) {
    Elementwise();
    const Tensor& out = Out(0);
    const auto dim = DimOf(IntOf(argument).value_or(0), out.rank());
    if (!IntOf(argument) || !dim) return LimitAll(FactorLimit::kUnknown);
    Limit(out.dims[*dim]);
    Mark(trace_.name(node_).starts_with("aten::_log_softmax") ? roles_.classes_ : roles_.lengths_,
         out.dims[*dim]);
  }
  static void Mark(std::vector<FactorId>& marked, const std::vector<FactorId>& factors) {
    marked.insert(marked.end(), factors.begin(), factors.end());
  }

  void Norm(size_t sizes) {
    const Tensor& input = In(0);
    const size_t last = IntsOf(sizes).size();
    if (last == 0 || last > input.rank()) return LimitAll(FactorLimit::kUnknown);
    const size_t kept = input.rank() - last;
    Broadcast(Out(0), input);
    for (size_t i = kept; i < input.rank(); ++i) Limit(input.dims[i]);
    for (size_t i = sizes + 1; i < arguments_.size(); ++i) Broadcast(input, In(i));
    for (size_t i = 1; i < results_.size(); ++i) UniteFirst(input, results_[i], kept);
  }
  void NormBack(size_t sizes) {
    const Tensor& input = In(1);
    const size_t last = IntsOf(sizes).size();
    if (last == 0 || last > input.rank()) return LimitAll(FactorLimit::kUnknown);
    const size_t kept = input.rank() - last;
    Broadcast(input, In(0));
    Broadcast(input, Out(0));
    for (size_t i = kept; i < input.rank(); ++i) Limit(input.dims[i]);
    for (size_t i = sizes + 1; i < arguments_.size(); ++i) {
      // Statistics have all dimensions, of size 1 where they are normed; weights have the others.
      const Tensor& other = In(i);
      if (other.rank() == input.rank()) {
        UniteFirst(input, other, kept);
      } else {
        Broadcast(input, other);
      }
    }
    std::vector<FactorId> summed;
    for (size_t i = 0; i < kept; ++i) {
      summed.insert(summed.end(), input.dims[i].begin(), input.dims[i].end());
    }
    for (size_t i = 1; i < results_.size(); ++i) {
      Broadcast(input, results_[i]);
      role_->summed[i] = summed;
    }
  }

  // `forward`: position of the forward result among the arguments of a backward operator.
  void Attention(size_t first, std::optional<size_t> forward) {
    constexpr size_t kDims = 4;
    const Tensor& query = In(first);
    const Tensor& key = In(first + 1);
    const Tensor& value = In(first + 2);
    if (query.rank() != kDims || key.rank() != kDims || value.rank() != kDims) {
      return LimitAll(FactorLimit::kUnknown);
    }
    Unite(query, 0, key, 0);
    Unite(query, 0, value, 0);
    Unite(key, 1, value, 1);
    UniteHeads(query, key);
    Mark(roles_.heads_, query.dims[1]);
    Mark(roles_.lengths_, key.dims[2]);
    Mark(roles_.depths_, key.dims[3]);
    Mark(roles_.depths_, value.dims[3]);
    Unite(key, 2, value, 2);
    Unite(query, 3, key, 3);
    for (const Tensor* tensor : {&query, &key, &value}) {
      Limit(tensor->dims[2]);
      Limit(tensor->dims[3]);
    }
    Tensor result = query;  // [batch, heads, length, depth of values]
    result.sizes[3] = value.sizes[3];
    result.dims[3] = value.dims[3];
    Tensor scores = query;
    scores.sizes[3] = key.sizes[2];
    scores.dims[3] = key.dims[2];
    if (!forward) {
      Broadcast(result, Out(0));
      UniteSizes(query, Out(1));
    } else {
      Broadcast(result, In(0));
      Broadcast(result, In(*forward));
      UniteSizes(query, In(*forward + 1));
      Broadcast(query, Out(0));
      Broadcast(key, Out(1));
      Broadcast(value, Out(2));
      if (Out(3).rank() == kDims) Broadcast(scores, Out(3));
    }
    for (size_t i = first + 3; i < arguments_.size(); ++i) {
      const bool is_other = forward && (i == *forward || i == *forward + 1);
      const Tensor& mask = In(i);
      if (is_other || mask.rank() < 2 || mask.rank() > kDims) continue;
      Broadcast(scores, mask);
    }
  }
  // Unites the heads of queries with those of keys, which several queries may share.
  void UniteHeads(const Tensor& query, const Tensor& key) {
    if (query.sizes[1] == key.sizes[1]) return Unite(query, 1, key, 1);
    const int64_t shared = key.sizes[1] > 0 ? query.sizes[1] / key.sizes[1] : 0;
    if (shared < 1 || shared * key.sizes[1] != query.sizes[1] ||
        !factors_.SplitAt(query.dims[1], shared)) {
      Limit(query.dims[1], FactorLimit::kUnknown);
      return Limit(key.dims[1], FactorLimit::kUnknown);
    }
    const auto [outer, inner] = Divided(query.dims[1], shared);
    Unite(outer, key.dims[1]);
  }
  // Returns the finest factors of a list, of which the last have the product `inner`.
  std::pair<std::vector<FactorId>, std::vector<FactorId>> Divided(
      const std::vector<FactorId>& factors, int64_t inner) const {
    std::vector<FactorId> finest = factors_.Expand(factors);
    size_t begin = finest.size();
    for (int64_t product = 1; begin > 0 && product < inner;) {
      product *= factors_.size(finest[--begin]);
    }
    const auto middle = finest.begin() + static_cast<std::ptrdiff_t>(begin);
    return {{finest.begin(), middle}, {middle, finest.end()}};
  }
  // Unites the first dimensions of equal sizes, such as those of the sums of an attention.
  void UniteSizes(const Tensor& a, const Tensor& b) {
    for (size_t i = 0; i < std::min(a.rank(), b.rank()) && a.sizes[i] == b.sizes[i]; ++i) {
      Unite(a, i, b, i);
    }
  }

  void Lookup() {
    const Tensor& rows = In(0);
    const Tensor& indices = In(1);
    const Tensor& out = Out(0);
    if (rows.rank() != 2 || out.rank() != indices.rank() + 1)
      return LimitAll(FactorLimit::kUnknown);
    UniteFirst(indices, out, indices.rank());
    Unite(rows, 1, out, out.rank() - 1);
    Limit(rows.dims[0]);
    OperatorRoles::Table& table = roles_.tables_.emplace_back();
    table.rows = rows.dims[0];
    for (const auto& factors : indices.dims) Mark(table.indices, factors);
  }
  void LookupBack() {
    const Tensor& gradient = In(0);
    const Tensor& indices = In(1);
    const Tensor& out = Out(0);
    if (out.rank() != 2 || gradient.rank() != indices.rank() + 1)
      return LimitAll(FactorLimit::kUnknown);
    UniteFirst(indices, gradient, indices.rank());
    Unite(gradient, gradient.rank() - 1, out, 1);
    Limit(out.dims[0]);
    for (const auto& factors : indices.dims) Limit(factors);
  }
  void Select(size_t argument) {
    const Tensor& rows = In(0);
    const Tensor& out = Out(0);
    const auto dim = DimOf(IntOf(argument).value_or(0), rows.rank());
    if (!dim || rows.rank() != out.rank()) return LimitAll(FactorLimit::kUnknown);
    for (size_t i = 0; i < out.rank(); ++i) {
      if (i != *dim) Unite(rows, i, out, i);
    }
    Unite(In(argument + 1), 0, out, *dim);
    Limit(rows.dims[*dim]);
  }

  void Gather(size_t argument) {
    const Tensor& from = In(0);
    const Tensor& indices = In(argument + 1);
    const auto dim = DimOf(IntOf(argument).value_or(0), from.rank());
    if (!dim || from.rank() != indices.rank()) return LimitAll(FactorLimit::kPart);
    for (size_t i = 0; i < from.rank(); ++i) {
      Unite(indices, i, Out(0), i);
      if (i == *dim) continue;
      if (from.sizes[i] == indices.sizes[i]) {
        Unite(from, i, indices, i);
      } else {
        Limit(indices.dims[i], FactorLimit::kPart);
      }
    }
    Limit(from.dims[*dim]);
  }

  // Dimensions before the first index stay.
  void Index() {
    const Tensor& from = In(0);
    size_t whole = 0;  // dimensions before the first index
    if (arguments_.size() > 1 && arguments_[1].value->kind == ValueKind::kList) {
      bool is_after = false;    // an index
      bool is_between = false;  // two indices that are not neighbours, whose results come first
      for (const Value& index : trace_.values(arguments_[1].value->as_list())) {
        const bool is_index = index.kind == ValueKind::kTensor &&
                              !IsUndefined(trace_, trace_.tensor(index.as_tensor()));
        if (!is_index && !is_after) ++whole;
        if (is_index && is_between) whole = 0;
        is_between = is_between || (is_after && !is_index);
        is_after = is_after || is_index;
      }
    }
    const auto limit = [&](const Tensor& tensor) {
      for (size_t i = whole; i < tensor.rank(); ++i) Limit(tensor.dims[i], FactorLimit::kPart);
    };
    UniteFirst(from, Out(0), whole);
    UniteFirst(from, In(2), whole);
    limit(from);
    limit(Out(0));
    limit(In(2));
  }

  void Join(size_t argument) {
    const Tensor& out = Out(0);
    const auto dim = DimOf(IntOf(argument).value_or(0), out.rank());
    if (!dim || arguments_.empty()) return LimitAll(FactorLimit::kUnknown);
    int64_t parts = 0;
    int64_t part = -1;
    bool are_equal = true;
    for (const Tensor& tensor : arguments_.front().tensors) {
      if (tensor.rank() != out.rank()) continue;  // an empty one
      for (size_t i = 0; i < out.rank(); ++i) {
        if (i != *dim) Unite(tensor, i, out, i);
      }
      are_equal = are_equal && (part < 0 || part == tensor.sizes[*dim]);
      part = tensor.sizes[*dim];
      ++parts;
    }
    const bool is_divided = are_equal && part > 0 && parts * part == out.sizes[*dim] &&
                            factors_.SplitAt(out.dims[*dim], part);
    if (!is_divided) return LimitJoined(*dim);
    const auto [outer, inner] = Divided(out.dims[*dim], part);
    Limit(outer, FactorLimit::kPart);
    for (const Tensor& tensor : arguments_.front().tensors) {
      if (tensor.rank() == out.rank()) Unite(tensor.dims[*dim], inner);
    }
  }
  void LimitJoined(size_t dim) {
    ForEach([&](const Tensor& tensor) {
      if (dim < tensor.rank()) Limit(tensor.dims[dim], FactorLimit::kPart);
    });
  }
  void Stack(size_t argument) {
    const Tensor& out = Out(0);
    const auto dim = DimOf(IntOf(argument).value_or(0), out.rank());
    if (!dim || arguments_.empty()) return LimitAll(FactorLimit::kUnknown);
    for (const Tensor& tensor : arguments_.front().tensors) {
      for (size_t i = 0; i < tensor.rank(); ++i) Unite(tensor, i, out, i < *dim ? i : i + 1);
    }
    Limit(out.dims[*dim], FactorLimit::kPart);
  }

  // Reduces dimensions of the first argument: those of an argument with their numbers, or all.
  void Reduce(const RuleRow& row) {
    const Tensor& input = In(0);
    if (row.rule == Rule::kReduce && In(row.a).rank() > 0) {  // the larger of two tensors
      return Elementwise();
    }
    std::vector<int64_t> numbers = IntsOf(row.a);
    // A single number may also be the type of a sum.
    if (row.rule == Rule::kReduce && IntOf(row.a)) numbers = {*IntOf(row.a)};
    std::vector<bool> is_reduced(input.rank(), numbers.empty());
    for (const int64_t number : numbers) {
      const auto dim = DimOf(number, input.rank());
      if (!dim) return LimitAll(FactorLimit::kUnknown);
      is_reduced[*dim] = true;
    }
    std::vector<FactorId> summed;
    for (size_t i = 0; i < input.rank(); ++i) {
      if (!is_reduced[i]) continue;
      summed.insert(summed.end(), input.dims[i].begin(), input.dims[i].end());
    }
    if (row.rule == Rule::kReduce) Limit(summed);
    for (size_t k = 0; k < results_.size(); ++k) {
      const Tensor& out = results_[k];
      const bool keeps = out.rank() == input.rank();
      size_t next = 0;
      for (size_t i = 0; i < input.rank(); ++i) {
        if (!is_reduced[i]) Unite(input, i, out, keeps ? i : next++);
      }
      role_->summed[k] = summed;
    }
  }

  void Lists() {
    std::vector<const std::vector<Tensor>*> lists;
    for (const Argument& argument : arguments_) {
      if (argument.value->kind == ValueKind::kList && !argument.tensors.empty()) {
        lists.push_back(&argument.tensors);
      }
    }
    if (!results_.empty()) lists.push_back(&results_);
    for (const std::vector<Tensor>* list : lists) {
      if (list->size() != lists.front()->size()) continue;
      for (size_t i = 0; i < list->size(); ++i) Broadcast((*lists.front())[i], (*list)[i]);
    }
  }
  void ListNorms() {
    if (arguments_.empty()) return;
    const std::vector<Tensor>& list = arguments_.front().tensors;
    for (size_t i = 0; i < std::min(list.size(), results_.size()); ++i) {
      for (const auto& factors : list[i].dims) {
        role_->summed[i].insert(role_->summed[i].end(), factors.begin(), factors.end());
      }
    }
  }

  const RecordedStep& step_;
  const Trace& trace_;
  const DataFlow& flow_;
  TensorFactors& tensors_;
  Factors& factors_;
  OperatorRoles& roles_;
  std::unordered_map<StringId, const RuleRow*> rows_;
  NodeId node_;
  OperatorRole* role_ = nullptr;
  std::vector<Argument> arguments_;
  std::vector<Tensor> results_;
};

OperatorRoles::OperatorRoles(const RecordedStep& step, const DataFlow& flow,
                             TensorFactors& tensors) {
  Applier(step, flow, tensors, *this).Run();
}

}  // namespace etude
