#include "src/suite/results/hot_spots.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/trace/words/operator_name.h"

namespace etude::suite {
namespace {

constexpr std::string_view kAten = "aten::";

struct OperatorRow {
  std::string_view name;  // see StemOf
  HotSpot category;
  std::string_view layer = "";
};

using enum HotSpot;

constexpr auto kRows = std::to_array<OperatorRow>({
    {"convolution", kConvolution, "convolution"},
    {"convolution_overrideable", kConvolution},
    {"mkldnn_convolution", kConvolution},
    {"cudnn_convolution", kConvolution},
    {"slow_conv2d", kConvolution},
    {"slow_conv3d", kConvolution},
    {"slow_conv_transpose2d", kConvolution},
    {"slow_conv_transpose3d", kConvolution},
    {"slow_conv_dilated2d", kConvolution},
    {"thnn_conv2d", kConvolution},
    {"conv_depthwise3d", kConvolution},
    {"mm", kGemm},
    {"bmm", kGemm},
    {"addmm", kGemm, "linear"},
    {"baddbmm", kGemm},
    {"linear", kGemm, "linear"},
    {"mv", kGemm},
    {"addmv", kGemm},
    {"dot", kGemm},
    {"addmm_activation", kGemm, "linear"},
    {"scaled_dot_product_flash_attention", kGemm, "attention"},
    {"scaled_dot_product_flash_attention_for_cpu", kGemm, "attention"},
    {"scaled_dot_product_efficient_attention", kGemm, "attention"},
    {"scaled_dot_product_cudnn_attention", kGemm, "attention"},
    {"batch_norm", kBatchNormalization, "batch normalization"},
    {"native_batch_norm", kBatchNormalization, "batch normalization"},
    {"native_batch_norm_legit", kBatchNormalization, "batch normalization"},
    {"cudnn_batch_norm", kBatchNormalization, "batch normalization"},
    {"relu", kRelu, "ReLU"},
    {"leaky_relu", kRelu, "leaky ReLU"},
    {"threshold", kRelu},
    {"hardtanh", kRelu},
    {"clamp_min", kRelu},
    {"max_pool2d", kPooling, "maximum pooling"},
    {"max_pool2d_with_indices", kPooling, "maximum pooling"},
    {"max_pool3d_with_indices", kPooling, "maximum pooling"},
    {"avg_pool2d", kPooling, "mean pooling"},
    {"avg_pool3d", kPooling, "mean pooling"},
    {"adaptive_avg_pool2d", kPooling, "mean pooling"},
    {"adaptive_max_pool2d", kPooling, "maximum pooling"},
    {"copy", kMemoryCopy},
    {"to_copy", kMemoryCopy},
    {"clone", kMemoryCopy},
    {"foreach_copy", kMemoryCopy},
    {"local_scalar_dense", kMemoryCopy},
    {"cat", kDataArrangement},
    {"stack", kDataArrangement},
    {"transpose", kDataArrangement},
    {"t", kDataArrangement},
    {"permute", kDataArrangement},
    {"view", kDataArrangement},
    {"reshape", kDataArrangement},
    {"unsafe_view", kDataArrangement},
    {"reshape_alias", kDataArrangement},
    {"as_strided", kDataArrangement},
    {"expand", kDataArrangement},
    {"expand_as", kDataArrangement},
    {"repeat", kDataArrangement},
    {"slice", kDataArrangement},
    {"slice_scatter", kDataArrangement},
    {"select", kDataArrangement},
    {"select_scatter", kDataArrangement},
    {"narrow", kDataArrangement},
    {"split", kDataArrangement},
    {"split_with_sizes", kDataArrangement},
    {"chunk", kDataArrangement},
    {"unbind", kDataArrangement},
    {"unfold", kDataArrangement},
    {"squeeze", kDataArrangement},
    {"unsqueeze", kDataArrangement},
    {"flatten", kDataArrangement},
    {"unflatten", kDataArrangement},
    {"flip", kDataArrangement},
    {"roll", kDataArrangement},
    {"im2col", kDataArrangement},
    {"col2im", kDataArrangement},
    {"constant_pad_nd", kDataArrangement, "padding"},
    {"pad", kDataArrangement},
    {"reflection_pad2d", kDataArrangement, "padding"},
    {"replication_pad2d", kDataArrangement, "padding"},
    {"pixel_shuffle", kDataArrangement, "pixel shuffle"},
    {"pixel_unshuffle", kDataArrangement},
    {"channel_shuffle", kDataArrangement},
    {"contiguous", kDataArrangement},
    {"zero", kDataArrangement},
    {"zeros", kDataArrangement},
    {"zeros_like", kDataArrangement},
    {"ones", kDataArrangement},
    {"ones_like", kDataArrangement},
    {"full", kDataArrangement},
    {"full_like", kDataArrangement},
    {"new_zeros", kDataArrangement},
    {"fill", kDataArrangement},
    {"empty", kDataArrangement},
    {"empty_like", kDataArrangement},
    {"empty_strided", kDataArrangement},
    {"new_empty", kDataArrangement},
    {"new_empty_strided", kDataArrangement},
    {"resize", kDataArrangement},
    {"detach", kDataArrangement},
    {"alias", kDataArrangement},
    {"to", kDataArrangement},
    {"arange", kDataArrangement},
    {"tril", kDataArrangement},
    {"triu", kDataArrangement},
    {"meshgrid", kDataArrangement},
    {"upsample_nearest2d", kDataArrangement, "upsampling"},
    {"upsample_bilinear2d", kDataArrangement, "upsampling"},
    {"grid_sampler_2d", kLookup, "grid sampling"},
    {"grid_sampler_3d", kLookup, "grid sampling"},
    {"embedding", kLookup, "embedding"},
    {"embedding_bag", kLookup, "embedding"},
    {"embedding_dense", kLookup},
    {"index", kLookup},
    {"index_put", kLookup},
    {"index_put_impl", kLookup},
    {"index_select", kLookup},
    {"index_add", kLookup},
    {"index_copy", kLookup},
    {"index_fill", kLookup},
    {"gather", kLookup},
    {"scatter", kLookup},
    {"scatter_add", kLookup},
    {"take", kLookup},
    {"masked_select", kLookup},
    {"nonzero", kLookup},
    {"softmax", kNormalization, "softmax"},
    {"log_softmax", kNormalization, "softmax"},
    {"masked_softmax", kNormalization, "softmax"},
    {"native_layer_norm", kNormalization, "layer normalization"},
    {"native_group_norm", kNormalization, "group normalization"},
    {"instance_norm", kNormalization, "instance normalization"},
    {"lstm", kRecurrentCell, "LSTM"},
    {"lstm_cell", kRecurrentCell, "LSTM"},
    {"gru", kRecurrentCell, "GRU"},
    {"gru_cell", kRecurrentCell, "GRU"},
    {"mkldnn_rnn_layer", kRecurrentCell},
    {"thnn_fused_lstm_cell", kRecurrentCell, "LSTM"},
    {"thnn_fused_gru_cell", kRecurrentCell, "GRU"},
    {"cudnn_rnn", kRecurrentCell},
    {"sum", kReduction},
    {"mean", kReduction},
    {"amax", kReduction},
    {"amin", kReduction},
    {"max", kReduction},
    {"min", kReduction},
    {"argmax", kReduction},
    {"argmin", kReduction},
    {"prod", kReduction},
    {"norm", kReduction},
    {"linalg_vector_norm", kReduction},
    {"var", kReduction},
    {"std", kReduction},
    {"var_mean", kReduction},
    {"any", kReduction},
    {"all", kReduction},
    {"logsumexp", kReduction},
    {"cumsum", kReduction},
    {"foreach_norm", kReduction},
    {"bernoulli", kRandom},
    {"uniform", kRandom},
    {"normal", kRandom},
    {"randn", kRandom},
    {"rand", kRandom},
    {"randint", kRandom},
    {"randperm", kRandom},
    {"random", kRandom},
    {"multinomial", kRandom},
    {"dropout", kRandom, "dropout"},
    {"native_dropout", kRandom, "dropout"},
    {"sort", kSorting},
    {"topk", kSorting},
    {"argsort", kSorting},
    {"unique2", kSorting},
    {"nll_loss", kLoss},
    {"nll_loss2d", kLoss},
    {"cross_entropy_loss", kLoss},
    {"binary_cross_entropy", kLoss},
    {"binary_cross_entropy_with_logits", kLoss},
    {"mse_loss", kLoss},
    {"l1_loss", kLoss},
    {"smooth_l1_loss", kLoss},
    {"huber_loss", kLoss},
    {"ctc_loss", kLoss},
    {"sigmoid", kElementWise, "sigmoid"},
    {"tanh", kElementWise, "tanh"},
    {"gelu", kElementWise, "GELU"},
    {"silu", kElementWise, "SiLU"},
    {"elu", kElementWise, "ELU"},
    {"softplus", kElementWise, "softplus"},
    {"fused_adam", kElementWise},
    {"fused_adamw", kElementWise},
    {"fused_sgd", kElementWise},
    {"conv1d", kConvolution},
    {"conv2d", kConvolution},
    {"conv3d", kConvolution},
    {"conv_transpose2d", kConvolution},
    {"conv_transpose3d", kConvolution},
    {"matmul", kGemm},
    {"batch_norm_impl_index", kBatchNormalization},
    {"unsafe_split", kDataArrangement},
    {"unsafe_chunk", kDataArrangement},
    {"reflection_pad1d", kDataArrangement, "padding"},
    {"linspace", kDataArrangement},
    {"scalar_tensor", kDataArrangement},
    {"resolve_conj", kDataArrangement},
    {"view_as_real", kDataArrangement},
    {"item", kMemoryCopy},
    {"grid_sampler", kLookup},
    {"layer_norm", kNormalization},
    {"value_selecting_reduction", kReduction},
    {"feature_dropout", kRandom, "dropout"},
    {"nll_loss_nd", kLoss},
});

// Elementary functions and operators, with the variants "foreach_NAME".
constexpr auto kElementary =
    std::to_array<std::string_view>({"abs",
                                     "add",
                                     "addcdiv",
                                     "addcmul",
                                     "bitwise_and",
                                     "bitwise_not",
                                     "bitwise_or",
                                     "ceil",
                                     "clamp",
                                     "clamp_max",
                                     "cos",
                                     "div",
                                     "eq",
                                     "erf",
                                     "exp",
                                     "expm1",
                                     "floor",
                                     "floor_divide",
                                     "fmod",
                                     "ge",
                                     "gt",
                                     "isfinite",
                                     "isnan",
                                     "le",
                                     "lerp",
                                     "log",
                                     "log1p",
                                     "log_sigmoid",
                                     "logical_and",
                                     "logical_not",
                                     "logical_or",
                                     "logical_xor",
                                     "lt",
                                     "masked_fill",
                                     "maximum",
                                     "minimum",
                                     "mul",
                                     "ne",
                                     "neg",
                                     "pow",
                                     "reciprocal",
                                     "remainder",
                                     "round",
                                     "rsqrt",
                                     "rsub",
                                     "sgn",
                                     "sign",
                                     "sin",
                                     "sqrt",
                                     "square",
                                     "sub",
                                     "trunc",
                                     "where",
                                     "xlogy",
                                     "nan_to_num",
                                     "complex",
                                     "real",
                                     "lift_fresh",
                                     "bitwise_xor",
                                     "atan2",
                                     "amp_foreach_non_finite_check_and_unscale",
                                     "amp_update_scale"});

// Returns an operator's name without namespace, overload, leading "_" and the endings "_", "_out",
// "_forward" and "_backward"; "" outside `aten::`.
std::string_view StemOf(std::string_view operator_name) {
  std::string_view name = BaseOperatorName(operator_name);
  if (!name.starts_with(kAten)) return "";
  name.remove_prefix(kAten.size());
  while (name.starts_with("_")) name.remove_prefix(1);
  const auto drop = [&](std::string_view ending) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  };
  while (name.ends_with("_")) name.remove_suffix(1);
  for (const std::string_view ending : {"_out", "_backward", "_jvp", "_forward", "_backward_data",
                                        "_data", "_functional", "_no_training", "_copy"}) {
    // "_copy" is part of a name where nothing else is left of it.
    if (name.size() > ending.size() && name != "to_copy" && name != "foreach_copy" &&
        name != "index_copy") {
      drop(ending);
    }
  }
  return name;
}

const OperatorRow* RowOf(std::string_view stem) {
  const auto* row = std::ranges::find(kRows, stem, &OperatorRow::name);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

std::string_view Name(HotSpot category) {
  switch (category) {
    case kDataArrangement: return "data arrangement";
    case kConvolution: return "convolution";
    case kGemm: return "GEMM";
    case kBatchNormalization: return "batch normalization";
    case kElementWise: return "element-wise";
    case kRelu: return "ReLU";
    case kPooling: return "pooling";
    case kMemoryCopy: return "memory copy";
    case kLookup: return "embedding and indexing";
    case kNormalization: return "softmax and normalization";
    case kRecurrentCell: return "recurrent cells";
    case kReduction: return "reduction";
    case kRandom: return "random numbers";
    case kSorting: return "sorting";
    case kLoss: return "loss";
    case kOther: return "other";
  }
  return "other";
}

HotSpot HotSpotOf(std::string_view operator_name) {
  std::string_view stem = StemOf(operator_name);
  if (stem.empty()) return kOther;
  if (const OperatorRow* row = RowOf(stem)) return row->category;
  constexpr std::string_view kForeach = "foreach_";
  if (stem.starts_with(kForeach)) stem.remove_prefix(kForeach.size());
  if (std::ranges::count(kElementary, stem) != 0) return kElementWise;
  return kOther;
}

std::string_view LayerOf(std::string_view operator_name) {
  const OperatorRow* row = RowOf(StemOf(operator_name));
  return row == nullptr ? "" : row->layer;
}

}  // namespace etude::suite
