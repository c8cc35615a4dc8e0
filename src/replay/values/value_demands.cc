#include "src/replay/values/value_demands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "src/base/ceil_div.h"
#include "src/run/step/tensor_shape.h"
#include "src/trace/words/enums.h"

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
    {"aten::one_hot", 0, Bound::kHighest, 0, -1},
    {"aten::bincount", 0, Bound::kHighest, 0, 0},
    {"aten::nonzero", 0, Bound::kMaskOfResult, 0, 0},
    {"aten::argwhere", 0, Bound::kMaskOfResult, 0, 0},
    {"aten::masked_scatter", 1, Bound::kMaskOfArg, 2, 0},
    {"aten::masked_scatter_", 1, Bound::kMaskOfArg, 2, 0},
    {"aten::_unique", 0, Bound::kDistinct, 0, 0},
    {"aten::_unique2", 0, Bound::kDistinct, 0, 0},
    {"aten::unique_consecutive", 0, Bound::kDistinct, 0, 0},
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
    {"aten::sqrt", 0, Bound::kRoot, 0, 0},
    {"aten::sqrt_", 0, Bound::kRoot, 0, 0},
    {"aten::rsqrt", 0, Bound::kRoot, 0, 0},
    {"aten::rsqrt_", 0, Bound::kRoot, 0, 0},
    {"aten::log", 0, Bound::kRoot, 0, 0},
    {"aten::log_", 0, Bound::kRoot, 0, 0},
    {"aten::log2", 0, Bound::kRoot, 0, 0},
    {"aten::log10", 0, Bound::kRoot, 0, 0},
    {"aten::reciprocal", 0, Bound::kPositive, 0, 0},
    {"aten::reciprocal_", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_sqrt", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_sqrt_", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_rsqrt", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_rsqrt_", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_log", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_reciprocal_", 0, Bound::kPositive, 0, 0},
    {"aten::_foreach_log2", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_log10", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_log1p", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_lgamma", 0, Bound::kRoot, 0, 0},
    {"aten::_foreach_pow", 0, Bound::kBase, 1, 0},
    {"aten::_foreach_pow_", 0, Bound::kBase, 1, 0},
    {"aten::pow", 0, Bound::kBase, 1, 0},
    {"aten::pow_", 0, Bound::kBase, 1, 0},
    {"aten::float_power", 0, Bound::kBase, 1, 0},
    {"aten::log1p", 0, Bound::kRoot, 0, 0},
    {"aten::log1p_", 0, Bound::kRoot, 0, 0},
    {"aten::log2_", 0, Bound::kRoot, 0, 0},
    {"aten::log10_", 0, Bound::kRoot, 0, 0},
    {"aten::lgamma", 0, Bound::kRoot, 0, 0},
    {"aten::digamma", 0, Bound::kRoot, 0, 0},
    {"aten::acos", 0, Bound::kRoot, 0, 0},
    {"aten::acos_", 0, Bound::kRoot, 0, 0},
    {"aten::asin", 0, Bound::kRoot, 0, 0},
    {"aten::asin_", 0, Bound::kRoot, 0, 0},
    {"aten::atanh", 0, Bound::kRoot, 0, 0},
    {"aten::atanh_", 0, Bound::kRoot, 0, 0},
    {"aten::erfinv", 0, Bound::kRoot, 0, 0},
    {"aten::erfinv_", 0, Bound::kRoot, 0, 0},
    {"aten::logit", 0, Bound::kRoot, 0, 0},
    {"aten::logit_", 0, Bound::kRoot, 0, 0},
    {"aten::xlogy", 1, Bound::kRoot, 0, 0},
    {"aten::bernoulli", 0, Bound::kRoot, 0, 0},
    {"aten::bernoulli_", 1, Bound::kRoot, 0, 0},
    {"aten::binary_cross_entropy", 0, Bound::kRoot, 0, 0},
    {"aten::binary_cross_entropy", 1, Bound::kRoot, 0, 0},
    {"aten::binary_cross_entropy_backward", 1, Bound::kRoot, 0, 0},
    {"aten::multinomial", 0, Bound::kRoot, 0, 0},
    {"aten::poisson", 0, Bound::kRoot, 0, 0},
    {"aten::normal", 1, Bound::kRoot, 0, 0},
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

// Demands of one call, derived from its recorded arguments.
class CallDemands {
 public:
  CallDemands(const Trace& trace, NodeId node)
      : trace_(trace), inputs_(trace.inputs(node)), outputs_(trace.outputs(node)) {}

  std::optional<FillRule> Rule(const ValueDemand& demand, size_t element, TensorId tensor) const {
    const DType dtype = DTypeOf(trace_, trace_.tensor(tensor));
    const bool floating = IsFloating(dtype);
    switch (demand.bound) {
      case Bound::kPositive:
      case Bound::kRoot:
        return floating ? std::optional(FillRule{Kind::kPositive, 0, 0}) : std::nullopt;
      case Bound::kWeight:
        return floating ? std::optional(FillRule{Kind::kWeight, 0, 0}) : std::nullopt;
      case Bound::kDivisor:
        return floating ? FillRule{Kind::kPositive, 0, 0} : FillRule{Kind::kConstant, 1, 0};
      case Bound::kBase:
        return floating && HasFractionalExponent(demand.of)
                   ? std::optional(FillRule{Kind::kPositive, 0, 0})
                   : std::nullopt;
      case Bound::kMaskOfResult: return Mask(tensor, OutputSize(0));
      case Bound::kMaskOfArg: {
        const auto values = Tensor(demand.of);
        return values ? Mask(tensor, values->numel) : std::nullopt;
      }
      case Bound::kDistinct: {
        const auto rows = OutputSize(0);
        if (!rows || *rows <= 0) return std::nullopt;
        return FillRule{Kind::kDistinct, 0, *rows};
      }
      case Bound::kHighest: {
        const auto rows = OutputSize(demand.dim);
        if (!rows || *rows <= 0 || !IsInteger(dtype)) return std::nullopt;
        return FillRule{Kind::kDistinct, 0, *rows};
      }
      case Bound::kIndexList: return IndexListRule(demand, element, tensor);
      case Bound::kPackLengths: return PackLengths();
      case Bound::kPackSizes: {
        const auto rows = Size(demand.of, 0);
        const auto own = trace_.tensor(tensor).numel;
        if (!rows || own <= 0) return std::nullopt;
        return FillRule{Kind::kLengths, CeilDiv(*rows, own), *rows};
      }
      case Bound::kRepeats: {
        const auto own = trace_.tensor(tensor).numel;
        const auto rows = OutputSize(0);
        if (!rows || own <= 0 || !IsInteger(dtype)) return std::nullopt;
        // With two tensors, the second contains the repeats, the first the repeated values.
        if (demand.argument == 0 && Tensor(1)) return std::nullopt;
        return FillRule{Kind::kLengths, CeilDiv(*rows, own), *rows};
      }
      case Bound::kOffsets: {
        const auto total = Tensor(demand.of);
        if (!total || !IsInteger(dtype)) return std::nullopt;
        return FillRule{Kind::kOffsets, IncludesLast(demand) ? 1 : 0, total->numel};
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
    for (const Value& item : trace_.values(value.as_list())) {
      if (item.kind != ValueKind::kInt) return {};
      ints.push_back(item.as_int());
    }
    return ints;
  }

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
        return tensor ? std::optional(tensor->numel) : std::nullopt;
      }
      case Bound::kNumber: return Int(demand.of);
      case Bound::kClasses: {
        const auto tensor = Tensor(demand.of);
        if (!tensor) return std::nullopt;
        const auto sizes = trace_.ints(tensor->shape);
        return At(sizes, sizes.size() > 1 ? 1 : 0);
      }
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

  // Returns a mask with `count` true elements in the tensor; its memory has fewer if the tensor
  // repeats it (`expand`).
  std::optional<FillRule> Mask(TensorId tensor, std::optional<int64_t> count) const {
    const TensorUse& use = trace_.tensor(tensor);
    const auto shape = ShapeOf(trace_, use);
    const int64_t size = ElementBytes(DTypeOf(trace_, use)).value_or(0);
    if (!count || !shape || size <= 0) return std::nullopt;
    const int64_t elements = shape->storage_bytes / size - use.offset;
    const int64_t repeats = elements > 0 ? std::max<int64_t>(use.numel / elements, 1) : 1;
    return FillRule{Kind::kMask, 0, CeilDiv(*count, repeats)};
  }

  // Returns whether a power of a negative number may be NaN.
  bool HasFractionalExponent(int argument) const {
    if (argument < 0 || static_cast<size_t>(argument) >= inputs_.size()) return false;
    const auto is_fraction = [](const Value& value) {
      if (value.kind == ValueKind::kInt) return value.as_int() < 0;
      if (value.kind != ValueKind::kDouble) return value.kind == ValueKind::kTensor;
      return value.as_double() < 0 || value.as_double() != std::trunc(value.as_double());
    };
    const Value& exponent = inputs_[static_cast<size_t>(argument)];
    if (exponent.kind != ValueKind::kList) return is_fraction(exponent);
    return std::ranges::any_of(trace_.values(exponent.as_list()), is_fraction);
  }

  // Element k of `indices` in self[indices]. Its dimension depends on the earlier elements, because
  // a mask covers as many dimensions as it has.
  std::optional<FillRule> IndexListRule(const ValueDemand& demand, size_t element,
                                        TensorId tensor) const {
    const DType dtype = DTypeOf(trace_, trace_.tensor(tensor));
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
      // A put has its values as third argument, a get as its result.
      const auto values = Tensor(2);
      if (!values) return Mask(tensor, OutputSize(0));
      // If a single value is put everywhere, the number of places is unknown.
      const auto sizes = trace_.ints(values->shape);
      const auto masked = static_cast<size_t>(std::max<int64_t>(
          1, static_cast<int64_t>(trace_.ints(self->shape).size()) -
                 static_cast<int64_t>(trace_.ints(trace_.tensor(tensor).shape).size()) + 1));
      if (sizes.size() < masked || values->numel == 1) return std::nullopt;
      return Mask(tensor, At(sizes, 0));
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

}  // namespace

bool DecidesSize(ValueDemand::Bound bound) {
  switch (bound) {
    case Bound::kPackLengths:
    case Bound::kPackSizes:
    case Bound::kRepeats:
    case Bound::kMaskOfResult:
    case Bound::kMaskOfArg:
    case Bound::kDistinct:
    case Bound::kHighest: return true;
    default: return false;
  }
}

std::span<const ValueDemand> ValueDemands() { return kDemands; }

std::optional<FillRule> RuleOf(const Trace& trace, NodeId node, const ValueDemand& demand,
                               size_t element, TensorId tensor) {
  return CallDemands(trace, node).Rule(demand, element, tensor);
}

}  // namespace etude
