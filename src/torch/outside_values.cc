#include "src/torch/outside_values.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/analysis/tensor_shape.h"
#include "src/torch/operator_name.h"
#include "src/trace/index_statistics.h"

namespace etude {
namespace {

using Bound = ValueDemand::Bound;
using Kind = FillRule::Kind;

constexpr auto kDemands = std::to_array<ValueDemand>({
    {"aten::embedding", 1, Bound::kRows, 0, 0},
    {"aten::embedding_renorm_", 1, Bound::kRows, 0, 0},
    {"aten::embedding_backward", 1, Bound::kNumber, 2, 0},
    {"aten::embedding_dense_backward", 1, Bound::kNumber, 2, 0},
    {"aten::embedding_sparse_backward", 1, Bound::kNumber, 2, 0},
    {"aten::embedding_bag", 1, Bound::kRows, 0, 0},
    {"aten::embedding_bag", 2, Bound::kOffsets, 1, 7},
    {"aten::_embedding_bag", 1, Bound::kRows, 0, 0},
    {"aten::_embedding_bag", 2, Bound::kOffsets, 1, 7},
    {"aten::_embedding_bag_forward_only", 1, Bound::kRows, 0, 0},
    {"aten::_embedding_bag_forward_only", 2, Bound::kOffsets, 1, 7},
    {"aten::_embedding_bag_backward", 1, Bound::kNumber, 6, 0},
    {"aten::_embedding_bag_backward", 2, Bound::kOffsets, 1, -1},
    {"aten::_embedding_bag_backward", 3, Bound::kRows, 0, 0},
    {"aten::_embedding_bag_sparse_backward", 1, Bound::kNumber, 5, 0},
    {"aten::_embedding_bag_sparse_backward", 2, Bound::kOffsets, 1, -1},
    {"aten::_embedding_bag_sparse_backward", 3, Bound::kRows, 0, 0},
    {"aten::_embedding_bag_dense_backward", 1, Bound::kNumber, 5, 0},
    {"aten::_embedding_bag_dense_backward", 2, Bound::kRows, 0, 0},
    {"aten::_embedding_bag_per_sample_weights_backward", 2, Bound::kRows, 1, 0},
    {"aten::_embedding_bag_per_sample_weights_backward", 3, Bound::kOffsets, 2, -1},
    {"aten::_embedding_bag_per_sample_weights_backward", 4, Bound::kRows, 0, 0},
    {"aten::index_select", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_select_backward", 3, Bound::kSizesByArg, 1, 2},
    {"aten::index_add", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_add_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_copy", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_copy_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_fill", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_fill_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_reduce", 2, Bound::kRowsByArg, 0, 1},
    {"aten::index_reduce_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::gather", 2, Bound::kRowsByArg, 0, 1},
    {"aten::gather_backward", 3, Bound::kRowsByArg, 1, 2},
    {"aten::scatter", 2, Bound::kRowsByArg, 0, 1},
    {"aten::scatter_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::scatter_add", 2, Bound::kRowsByArg, 0, 1},
    {"aten::scatter_add_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::scatter_reduce", 2, Bound::kRowsByArg, 0, 1},
    {"aten::scatter_reduce_", 2, Bound::kRowsByArg, 0, 1},
    {"aten::take_along_dim", 1, Bound::kRowsByArg, 0, 2},
    {"aten::take", 1, Bound::kElements, 0, 0},
    {"aten::put", 1, Bound::kElements, 0, 0},
    {"aten::put_", 1, Bound::kElements, 0, 0},
    {"aten::index", 1, Bound::kIndexList, 0, 0},
    {"aten::index_put", 1, Bound::kIndexList, 0, 0},
    {"aten::index_put_", 1, Bound::kIndexList, 0, 0},
    {"aten::_index_put_impl_", 1, Bound::kIndexList, 0, 0},
    {"aten::_unsafe_index", 1, Bound::kIndexList, 0, 0},
    {"aten::_unsafe_index_put", 1, Bound::kIndexList, 0, 0},
    {"aten::cross_entropy_loss", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss_nd", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss2d", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss_forward", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss2d_forward", 1, Bound::kClasses, 0, 0},
    {"aten::nll_loss_backward", 2, Bound::kClasses, 1, 0},
    {"aten::nll_loss2d_backward", 2, Bound::kClasses, 1, 0},
    {"aten::multi_margin_loss", 1, Bound::kRows, 0, -1},
    {"aten::multi_margin_loss_backward", 2, Bound::kRows, 1, -1},
    {"aten::multilabel_margin_loss", 1, Bound::kRows, 0, -1},
    {"aten::multilabel_margin_loss_forward", 1, Bound::kRows, 0, -1},
    {"aten::multilabel_margin_loss_backward", 2, Bound::kRows, 1, -1},
    {"aten::one_hot", 0, Bound::kOutputRows, 0, -1},
    {"aten::bincount", 0, Bound::kOutputRows, 0, 0},
    {"aten::ctc_loss", 1, Bound::kLabels, 0, 2},
    {"aten::ctc_loss", 2, Bound::kRows, 0, 0},
    {"aten::ctc_loss", 3, Bound::kRows, 1, -1},
    {"aten::_ctc_loss", 1, Bound::kLabels, 0, 2},
    {"aten::_ctc_loss_backward", 2, Bound::kLabels, 1, 2},
    {"aten::_pack_padded_sequence", 1, Bound::kPackLengths, 0, 0},
    {"aten::_pad_packed_sequence", 1, Bound::kPackSizes, 0, 0},
    {"aten::repeat_interleave", 0, Bound::kRepeats, 0, 0},
    {"aten::repeat_interleave", 1, Bound::kRepeats, 0, 0},
    {"aten::max_unpool2d", 1, Bound::kProduct, 2, 0},
    {"aten::max_unpool3d", 1, Bound::kProduct, 2, 0},
    {"aten::max_pool2d_with_indices_backward", 7, Bound::kPlane, 1, 2},
    {"aten::max_pool3d_with_indices_backward", 7, Bound::kPlane, 1, 3},
    {"aten::adaptive_max_pool2d_backward", 2, Bound::kPlane, 1, 2},
    {"aten::value_selecting_reduction_backward", 2, Bound::kSizesByArg, 3, 1},
    {"aten::masked_select", 1, Bound::kMaskOfResult, 0, 0},
    {"aten::div", 1, Bound::kDivisor, 0, 0},
    {"aten::div_", 1, Bound::kDivisor, 0, 0},
    {"aten::floor_divide", 1, Bound::kDivisor, 0, 0},
    {"aten::floor_divide_", 1, Bound::kDivisor, 0, 0},
    {"aten::remainder", 1, Bound::kDivisor, 0, 0},
    {"aten::remainder_", 1, Bound::kDivisor, 0, 0},
    {"aten::fmod", 1, Bound::kDivisor, 0, 0},
    {"aten::fmod_", 1, Bound::kDivisor, 0, 0},
    {"aten::addcdiv", 2, Bound::kPositive, 0, 0},
    {"aten::addcdiv_", 2, Bound::kPositive, 0, 0},
    {"aten::sqrt", 0, Bound::kPositive, 0, 0},
    {"aten::sqrt_", 0, Bound::kPositive, 0, 0},
    {"aten::rsqrt", 0, Bound::kPositive, 0, 0},
    {"aten::rsqrt_", 0, Bound::kPositive, 0, 0},
    {"aten::log", 0, Bound::kPositive, 0, 0},
    {"aten::log_", 0, Bound::kPositive, 0, 0},
    {"aten::log2", 0, Bound::kPositive, 0, 0},
    {"aten::log10", 0, Bound::kPositive, 0, 0},
    {"aten::reciprocal", 0, Bound::kPositive, 0, 0},
    {"aten::reciprocal_", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_sqrt", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_sqrt_", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_rsqrt", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_rsqrt_", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_log", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_reciprocal_", 0, Bound::kPositive, 0, 0},
    {"aten::_fused_adam_", 3, Bound::kPositive, 0, 0},
    {"aten::_fused_adam_", 4, Bound::kPositive, 0, 0},
    {"aten::_fused_adamw_", 3, Bound::kPositive, 0, 0},
    {"aten::_fused_adamw_", 4, Bound::kPositive, 0, 0},
    {"aten::_fused_adagrad_", 2, Bound::kPositive, 0, 0},
    {"aten::batch_norm", 1, Bound::kPositive, 0, 0},
    {"aten::batch_norm", 4, Bound::kPositive, 0, 0},
    {"aten::native_batch_norm", 1, Bound::kPositive, 0, 0},
    {"aten::native_batch_norm", 4, Bound::kPositive, 0, 0},
    {"aten::native_batch_norm_backward", 4, Bound::kPositive, 0, 0},
    {"aten::native_batch_norm_backward", 6, Bound::kPositive, 0, 0},
    {"aten::cudnn_batch_norm_backward", 6, Bound::kPositive, 0, 0},
    {"aten::layer_norm", 2, Bound::kPositive, 0, 0},
    {"aten::native_layer_norm", 2, Bound::kPositive, 0, 0},
    {"aten::native_layer_norm_backward", 4, Bound::kPositive, 0, 0},
    {"aten::rms_norm", 2, Bound::kPositive, 0, 0},
    {"aten::group_norm", 2, Bound::kPositive, 0, 0},
    {"aten::native_group_norm", 1, Bound::kPositive, 0, 0},
    {"aten::native_group_norm_backward", 3, Bound::kPositive, 0, 0},
    {"aten::linear", 1, Bound::kWeight, 0, 0},
    {"aten::addmm", 2, Bound::kWeight, 0, 0},
    {"aten::mm", 1, Bound::kWeight, 0, 0},
    {"aten::matmul", 1, Bound::kWeight, 0, 0},
    {"aten::conv1d", 1, Bound::kWeight, 0, 0},
    {"aten::conv2d", 1, Bound::kWeight, 0, 0},
    {"aten::conv3d", 1, Bound::kWeight, 0, 0},
    {"aten::convolution", 1, Bound::kWeight, 0, 0},
    {"aten::_convolution", 1, Bound::kWeight, 0, 0},
    {"aten::lstm", 2, Bound::kWeight, 0, 0},
    {"aten::lstm", 3, Bound::kWeight, 0, 0},
    {"aten::gru", 2, Bound::kWeight, 0, 0},
    {"aten::gru", 3, Bound::kWeight, 0, 0},
});

// Operators whose first result holds values of their arguments and no others; a demand on it is one
// on all arguments of the same type. Further results (the order that sort found) are no such
// values.
constexpr auto kMovers = std::to_array<std::string_view>({
    "aten::_reshape_copy",
    "aten::_to_copy",
    "aten::_unsafe_view",
    "aten::cat",
    "aten::chunk",
    "aten::clamp",
    "aten::clamp_",
    "aten::clamp_max",
    "aten::clamp_min",
    "aten::clone",
    "aten::concat",
    "aten::constant_pad_nd",
    "aten::contiguous",
    "aten::copy_",
    "aten::expand_copy",
    "aten::flip",
    "aten::gather",
    "aten::hstack",
    "aten::index",
    "aten::index_select",
    "aten::masked_fill",
    "aten::masked_fill_",
    "aten::masked_select",
    "aten::pad",
    "aten::pin_memory",
    "aten::_pin_memory",
    "aten::repeat",
    "aten::repeat_interleave",
    "aten::reshape",
    "aten::roll",
    "aten::scatter",
    "aten::scatter_",
    "aten::sort",
    "aten::stack",
    "aten::to",
    "aten::tril",
    "aten::triu",
    "aten::type_as",
    "aten::unique",
    "aten::_unique2",
    "aten::vstack",
    "aten::where",
});

// Operators whose result is the running sum of their first argument.
constexpr auto kRunningSums = std::to_array<std::string_view>({"aten::cumsum", "aten::cumsum_"});

bool IsRunningSum(std::string_view op) {
  return std::ranges::find(kRunningSums, op) != kRunningSums.end();
}

bool IsMover(std::string_view op) { return std::ranges::find(kMovers, op) != kMovers.end(); }

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64: return true;
    default: return false;
  }
}

bool IsFloating(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2Fnuz:
    case DType::kFloat8E8M0Fnu: return true;
    default: return false;
  }
}

// The demands of one call, read off its recorded arguments.
class CallDemands {
 public:
  CallDemands(const Trace& trace, NodeId node)
      : trace_(trace), inputs_(trace.inputs(node)), outputs_(trace.outputs(node)) {}

  std::optional<FillRule> RuleOf(const ValueDemand& demand, size_t element, TensorId tensor) const {
    const DType dtype = DTypeOf(trace_, trace_.tensor(tensor));
    const bool floating = IsFloating(dtype);
    switch (demand.bound) {
      case Bound::kPositive:
        return floating ? std::optional(FillRule{Kind::kPositive, 0, 0}) : std::nullopt;
      case Bound::kWeight:
        return floating ? std::optional(FillRule{Kind::kWeight, 0, 0}) : std::nullopt;
      case Bound::kDivisor:
        return floating ? FillRule{Kind::kPositive, 0, 0} : FillRule{Kind::kConstant, 1, 0};
      case Bound::kConstant: return FillRule{Kind::kConstant, demand.dim, 0};
      case Bound::kMaskOfResult: return Mask(dtype, OutputSize(0));
      case Bound::kIndexList: return IndexListRule(demand, element, dtype);
      case Bound::kPackLengths: return PackLengths();
      case Bound::kPackSizes: {
        const auto rows = Size(demand.of, 0);
        const auto own = Numel(trace_.tensor(tensor));
        if (!rows || own <= 0) return std::nullopt;
        return FillRule{Kind::kLengths, (*rows + own - 1) / own, *rows};
      }
      case Bound::kRepeats: {
        const auto own = Numel(trace_.tensor(tensor));
        const auto rows = OutputSize(0);
        if (!rows || own <= 0 || !IsInteger(dtype)) return std::nullopt;
        return FillRule{Kind::kLengths, (*rows + own - 1) / own, *rows};
      }
      case Bound::kOffsets: {
        const auto total = Tensor(demand.of);
        if (!total || !IsInteger(dtype)) return std::nullopt;
        return FillRule{Kind::kOffsets, IncludesLast(demand) ? 1 : 0, Numel(*total)};
      }
      default: break;
    }
    if (!IsInteger(dtype)) return std::nullopt;
    const auto high = UpperBound(demand);
    if (!high || *high <= 0) return std::nullopt;
    const int64_t low = demand.bound == Bound::kLabels && *high > 1 ? 1 : 0;
    return FillRule{Kind::kIndex, low, *high};
  }

 private:
  std::optional<TensorUse> Tensor(int argument) const {
    if (argument < 0 || static_cast<size_t>(argument) >= inputs_.size()) return std::nullopt;
    const Value& value = inputs_[static_cast<size_t>(argument)];
    if (value.kind != ValueKind::kTensor) return std::nullopt;
    return trace_.tensor(value.as_tensor());
  }
  std::optional<int64_t> Int(int argument) const {
    if (argument < 0 || static_cast<size_t>(argument) >= inputs_.size()) return std::nullopt;
    const Value& value = inputs_[static_cast<size_t>(argument)];
    if (value.kind != ValueKind::kInt) return std::nullopt;
    return value.as_int();
  }
  std::vector<int64_t> Ints(int argument) const {
    std::vector<int64_t> ints;
    if (argument < 0 || static_cast<size_t>(argument) >= inputs_.size()) return ints;
    const Value& value = inputs_[static_cast<size_t>(argument)];
    if (value.kind != ValueKind::kList) return ints;
    for (const Value& item : trace_.values(value.as_list())) ints.push_back(item.as_int());
    return ints;
  }
  int64_t Numel(const TensorUse& use) const { return use.numel; }

  static std::optional<int64_t> At(std::span<const int64_t> sizes, int64_t dim) {
    if (dim < 0) dim += static_cast<int64_t>(sizes.size());
    if (sizes.empty() && dim <= 0) return 1;
    if (dim < 0 || dim >= static_cast<int64_t>(sizes.size())) return std::nullopt;
    return sizes[static_cast<size_t>(dim)];
  }
  std::optional<int64_t> Size(int argument, int64_t dim) const {
    const auto tensor = Tensor(argument);
    if (!tensor) return std::nullopt;
    return At(trace_.ints(tensor->shape), dim);
  }
  std::optional<int64_t> OutputSize(int64_t dim, size_t output = 0) const {
    if (outputs_.size() <= output || outputs_[output].kind != ValueKind::kTensor) {
      return std::nullopt;
    }
    return At(trace_.ints(trace_.tensor(outputs_[output].as_tensor()).shape), dim);
  }
  bool IncludesLast(const ValueDemand& demand) const {
    if (demand.dim < 0 || static_cast<size_t>(demand.dim) >= inputs_.size()) return false;
    const Value& value = inputs_[static_cast<size_t>(demand.dim)];
    return value.kind == ValueKind::kBool && value.as_bool();
  }

  std::optional<int64_t> UpperBound(const ValueDemand& demand) const {
    switch (demand.bound) {
      case Bound::kRows:
      case Bound::kLabels: return Size(demand.of, demand.dim);
      case Bound::kRowsByArg: {
        const auto dim = Int(demand.dim);
        return dim ? Size(demand.of, *dim) : std::nullopt;
      }
      case Bound::kSizesByArg: {
        const auto dim = Int(demand.dim);
        const std::vector<int64_t> sizes = Ints(demand.of);
        return dim ? At(sizes, *dim) : std::nullopt;
      }
      case Bound::kProduct: return Product(Ints(demand.of), 0);
      case Bound::kPlane: {
        const auto tensor = Tensor(demand.of);
        if (!tensor) return std::nullopt;
        const auto sizes = trace_.ints(tensor->shape);
        const auto planes = static_cast<size_t>(demand.dim);
        if (sizes.size() < planes) return std::nullopt;
        return Product({sizes.begin(), sizes.end()}, sizes.size() - planes);
      }
      case Bound::kElements: {
        const auto tensor = Tensor(demand.of);
        return tensor ? std::optional(Numel(*tensor)) : std::nullopt;
      }
      case Bound::kNumber: return Int(demand.of);
      case Bound::kClasses: {
        const auto tensor = Tensor(demand.of);
        if (!tensor) return std::nullopt;
        const auto sizes = trace_.ints(tensor->shape);
        return At(sizes, sizes.size() > 1 ? 1 : 0);
      }
      case Bound::kOutputRows: return OutputSize(demand.dim);
      default: return std::nullopt;
    }
  }

  static std::optional<int64_t> Product(const std::vector<int64_t>& sizes, size_t from) {
    int64_t product = 1;
    for (size_t i = from; i < sizes.size(); ++i) {
      if (__builtin_mul_overflow(product, sizes[i], &product)) return std::nullopt;
    }
    return product;
  }

  static std::optional<FillRule> Mask(DType dtype, std::optional<int64_t> count) {
    if (dtype != DType::kBool || !count) return std::nullopt;
    return FillRule{Kind::kMask, 0, *count};
  }

  // Element k of `indices` in self[indices]: which dimension it stands for depends on the elements
  // before it, as a mask takes as many dimensions as it has.
  std::optional<FillRule> IndexListRule(const ValueDemand& demand, size_t element,
                                        DType dtype) const {
    const auto self = Tensor(demand.of);
    const Value& list = inputs_[static_cast<size_t>(demand.argument)];
    if (!self || list.kind != ValueKind::kList) return std::nullopt;
    const auto items = trace_.values(list.as_list());
    int64_t dim = 0;
    for (size_t i = 0; i < element && i < items.size(); ++i) {
      int64_t taken = 1;
      if (items[i].kind == ValueKind::kTensor) {
        const TensorUse& use = trace_.tensor(items[i].as_tensor());
        if (DTypeOf(trace_, use) == DType::kBool) {
          taken = static_cast<int64_t>(trace_.ints(use.shape).size());
        }
      }
      dim += taken;
    }
    if (dtype == DType::kBool) {
      // A put names the values by its third argument, a get by its result.
      const auto values = Tensor(2);
      if (values && !trace_.ints(values->shape).empty()) {
        return Mask(dtype, At(trace_.ints(values->shape), 0));
      }
      return Mask(dtype, OutputSize(0));
    }
    if (!IsInteger(dtype)) return std::nullopt;
    const auto high = At(trace_.ints(self->shape), dim);
    if (!high || *high <= 0) return std::nullopt;
    return FillRule{Kind::kIndex, 0, *high};
  }

  std::optional<FillRule> PackLengths() const {
    const auto total = OutputSize(0, 0);
    const auto longest = OutputSize(0, 1);
    if (!total || !longest) return std::nullopt;
    return FillRule{Kind::kLengths, *longest, *total};
  }

  const Trace& trace_;
  std::span<const Value> inputs_;
  std::span<const Value> outputs_;
};

// Which of two rules for one memory holds: the narrower index range, and integers' demands before
// floats' preferences.
FillRule Merge(const FillRule& a, const FillRule& b) {
  const auto strength = [](Kind kind) {
    switch (kind) {
      case Kind::kDefault: return 0;
      case Kind::kWeight: return 1;
      case Kind::kPositive: return 2;
      case Kind::kConstant: return 3;
      case Kind::kMask: return 4;
      case Kind::kIndex: return 5;
      case Kind::kOffsets: return 6;
      case Kind::kSteps: return 7;
      case Kind::kLengths: return 8;
    }
    return 0;
  };
  if (strength(a.kind) != strength(b.kind)) return strength(a.kind) > strength(b.kind) ? a : b;
  if (a.kind != Kind::kIndex) return a;
  return {.kind = Kind::kIndex,
          .low = std::max(a.low, b.low),
          .high = std::min(a.high, b.high),
          .skew = std::max(a.skew, b.skew),
          .recorded = a.recorded ? a.recorded : b.recorded};
}

class Inference {
 public:
  Inference(const RecordedStep& step, const DataFlow& flow)
      : step_(step), trace_(step.trace()), flow_(flow), rules_(flow.version_count()) {
    for (const ValueDemand& demand : kDemands) demands_[demand.op].push_back(&demand);
  }

  std::vector<FillRule> Run() {
    for (const NodeId node : step_.nodes()) {
      if (step_.is_operator(step_.position(node))) Collect(node);
    }
    // Values move forward, so one walk backward carries demands to their sources; memory that is
    // written in place and read again may need another.
    for (int round = 0; round < 4; ++round) {
      bool changed = false;
      for (size_t i = step_.nodes().size(); i-- > 0;) changed |= CarryBack(step_.nodes()[i]);
      if (!changed) break;
    }
    for (const auto& [version, range] : ranges_) {
      if (rules_[version.index()].kind == Kind::kDefault) Add(version, range);
    }
    return std::move(rules_);
  }

 private:
  void Collect(NodeId node) {
    const auto found = demands_.find(BaseOperatorName(SchemaOf(trace_, node)));
    if (found != demands_.end()) {
      const CallDemands call(trace_, node);
      for (const ValueDemand* demand : found->second) Apply(node, call, *demand);
    }
    CollectUpdated(node);
    ReadRange(node);
    ReadStatistics(node);
    ReadValues(node);
  }

  // What a step updates is a parameter or a state: it starts as small as parameters are.
  void CollectUpdated(NodeId node) {
    const auto inputs = trace_.inputs(node);
    const auto uses = flow_.inputs(node);
    const auto schema = trace_.op_schema(node);
    const auto [updated, is_new] = updated_.try_emplace(schema);
    if (is_new) updated->second = UpdatedArguments(trace_.text(schema));
    size_t flat = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t begin = flat;
      auto count = [&](TensorId) { ++flat; };
      ForEachTensor(trace_, inputs.subspan(i, 1), count);
      if (i >= updated->second.size() || !updated->second[i]) continue;
      for (size_t k = begin; k < flat && k < uses.size(); ++k) {
        const DType dtype = DTypeOf(trace_, trace_.tensor(uses[k].tensor));
        if (uses[k].version && IsFloating(dtype)) Add(uses[k].version, {Kind::kWeight, 0, 0});
      }
    }
  }

  void Apply(NodeId node, const CallDemands& call, const ValueDemand& demand) {
    const auto inputs = trace_.inputs(node);
    const auto argument = static_cast<size_t>(demand.argument);
    if (argument >= inputs.size()) return;
    size_t flat = 0;  // tensors before the argument
    auto count = [&](TensorId) { ++flat; };
    ForEachTensor(trace_, inputs.first(argument), count);
    const Value& value = inputs[argument];
    if (value.kind == ValueKind::kTensor) {
      Restrict(node, call, demand, flat, 0);
    } else if (value.kind == ValueKind::kList) {
      const auto items = trace_.values(value.as_list());
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].kind == ValueKind::kTensor) Restrict(node, call, demand, flat++, i);
      }
    }
  }

  void Restrict(NodeId node, const CallDemands& call, const ValueDemand& demand, size_t flat,
                size_t element) {
    const auto uses = flow_.inputs(node);
    if (flat >= uses.size() || !uses[flat].version) return;
    const auto rule = call.RuleOf(demand, element, uses[flat].tensor);
    if (rule) Add(uses[flat].version, *rule);
  }

  // The observer's tensor_range: {"flat tensor index":[min,max],…}.
  void ReadRange(NodeId node) {
    std::string_view text = trace_.text(trace_.tensor_range(node));
    const auto uses = flow_.inputs(node);
    while (!text.empty()) {
      const size_t quote = text.find('"');
      const size_t open = text.find('[');
      const size_t comma = text.find(',', open);
      const size_t close = text.find(']', open);
      if (quote == std::string_view::npos || close == std::string_view::npos || comma > close ||
          open < quote) {
        return;
      }
      const auto number = [](std::string_view digits) {
        return std::strtoll(std::string(digits).c_str(), nullptr, 10);
      };
      const auto flat = static_cast<uint64_t>(number(text.substr(quote + 1, 20)));
      const int64_t low = number(text.substr(open + 1, comma - open - 1));
      const int64_t high = number(text.substr(comma + 1, close - comma - 1));
      text.remove_prefix(close + 1);
      if (flat >= uses.size() || !uses[flat].version || low < 0 || high < low ||
          high == INT64_MAX) {
        continue;
      }
      FillRule& rule = rules_[uses[flat].version.index()];
      // Only ever narrows what the operators demand: recorded ranges can be garbage.
      if (rule.kind == Kind::kIndex && low >= rule.low && high < rule.high) {
        rule.low = low;
        rule.high = high + 1;
      } else if (rule.kind == Kind::kDefault &&
                 IsInteger(DTypeOf(trace_, trace_.tensor(uses[flat].tensor)))) {
        ranges_.emplace_back(uses[flat].version, FillRule{Kind::kIndex, low, high + 1});
      }
    }
  }

  // The memory of tensor number `flat` of a node, or kNone.
  StorageVersion VersionOf(NodeId node, uint64_t flat) const {
    const auto uses = flow_.inputs(node);
    return flat < uses.size() ? uses[flat].version : StorageVersion::None();
  }

  void ReadStatistics(NodeId node) {
    const auto statistics = ParseIndexStatistics(trace_.text(trace_.index_statistics(node)));
    if (!statistics) return;
    for (const IndexStatistics& row : *statistics) {
      const StorageVersion version = VersionOf(node, row.tensor);
      if (!version || !row.skew) continue;
      FillRule& rule = rules_[version.index()];
      if (rule.kind == Kind::kIndex) rule.skew = std::max(rule.skew, *row.skew);
    }
  }

  // Recorded elements, if the operators that read them can.
  void ReadValues(NodeId node) {
    auto recorded = ParseIndexValues(trace_.text(trace_.index_values(node)));
    if (!recorded) return;
    for (IndexValues& row : *recorded) {
      const StorageVersion version = VersionOf(node, row.tensor);
      if (!version) continue;
      FillRule& rule = rules_[version.index()];
      const int64_t end = rule.kind == Kind::kOffsets ? rule.high + 1 : rule.high;
      const bool fits = std::ranges::all_of(
          row.values, [&](int64_t value) { return value >= rule.low && value < end; });
      const bool usable = rule.kind == Kind::kIndex ||
                          (rule.kind == Kind::kOffsets && std::ranges::is_sorted(row.values));
      if (!fits || !usable) continue;
      rule.recorded = std::make_shared<const std::vector<int64_t>>(std::move(row.values));
    }
  }

  bool Add(StorageVersion version, const FillRule& rule) {
    FillRule& have = rules_[version.index()];
    const FillRule merged = Merge(have, rule);
    if (merged == have) return false;
    have = merged;
    return true;
  }

  bool CarryBack(NodeId node) {
    if (!step_.is_operator(step_.position(node))) return false;
    const std::string_view op = BaseOperatorName(SchemaOf(trace_, node));
    if (IsRunningSum(op)) return CarryToSteps(node);
    if (!IsMover(op)) return false;
    bool changed = false;
    for (const DataFlow::Use& result : MovedValues(node)) {
      if (!result.version) continue;
      FillRule rule = rules_[result.version.index()];
      // Ranges and how frequent values are survive a move. Order does where all are moved, and
      // ascending parts are the best guess where some are; sums do not.
      if (rule.kind != Kind::kIndex && rule.kind != Kind::kOffsets) continue;
      if (rule.kind == Kind::kIndex) rule.recorded = nullptr;
      for (const DataFlow::Use& source : flow_.inputs(node)) {
        if (!source.version || source.version == result.version) continue;
        const DType dtype = DTypeOf(trace_, trace_.tensor(source.tensor));
        if (!IsInteger(dtype)) continue;
        if (dtype != DTypeOf(trace_, trace_.tensor(result.tensor)) && !MayConvert(node)) continue;
        changed |= Add(source.version, rule);
      }
    }
    return changed;
  }

  // What offsets are the running sum of.
  bool CarryToSteps(NodeId node) {
    const auto sums = flow_.outputs(node);
    const auto terms = flow_.inputs(node);
    if (sums.empty() || terms.empty() || !sums[0].version || !terms[0].version) return false;
    FillRule rule = rules_[sums[0].version.index()];
    if (rule.kind != Kind::kOffsets || terms[0].version == sums[0].version) return false;
    if (!IsInteger(DTypeOf(trace_, trace_.tensor(terms[0].tensor)))) return false;
    rule.kind = Kind::kSteps;
    return Add(terms[0].version, rule);
  }

  // The first result; it may be a list (chunk).
  std::span<const DataFlow::Use> MovedValues(NodeId node) const {
    const auto results = flow_.outputs(node);
    const auto values = trace_.outputs(node);
    if (values.size() < 2 || results.empty()) return results;
    return values[0].kind == ValueKind::kTensor ? results.first(1) : results;
  }

  bool MayConvert(NodeId node) const {
    const std::string_view op = BaseOperatorName(SchemaOf(trace_, node));
    return op == "aten::to" || op == "aten::_to_copy" || op == "aten::copy_";
  }

  const RecordedStep& step_;
  const Trace& trace_;
  const DataFlow& flow_;
  std::vector<FillRule> rules_;
  std::vector<std::pair<StorageVersion, FillRule>> ranges_;
  std::unordered_map<std::string_view, std::vector<const ValueDemand*>> demands_;
  std::unordered_map<StringId, std::vector<bool>> updated_;  // by schema
};

}  // namespace

std::span<const ValueDemand> ValueDemands() { return kDemands; }

std::vector<FillRule> InferFillRules(const RecordedStep& step, const DataFlow& flow) {
  return Inference(step, flow).Run();
}

}  // namespace etude
