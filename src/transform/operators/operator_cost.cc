#include "src/transform/operators/operator_cost.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "src/run/waits/program_order.h"

namespace etude {
namespace {

// Formulas, as in torch.utils.flop_counter.
enum class Formula : uint8_t {
  kProduct,            // 2 * output elements * inner dimension; `a` is the left factor
  kConvolution,        // `a` input, `b` weight
  kConvolutionBack,    // `a` gradient, `b` weight: the forward cost per computed gradient
  kAttention,          // `a` query, `a`+1 key, `a`+2 value: [batch, heads, length, depth]
  kAttentionBack,      // the same after the gradient
  kAttentionByLength,  // [batch, length, heads, depth]
  kAttentionBackByLength,
  kLookup,   // reads as many bytes of the largest input as it outputs
  kBag,      // reads a row of the largest input per element of the next one
  kNothing,  // views and memory
};

struct FormulaRow {
  std::string_view name;  // after "aten::"
  Formula formula;
  uint8_t a = 0;
  uint8_t b = 0;
};

constexpr auto kFormulas = std::to_array<FormulaRow>({
    {"mm", Formula::kProduct, 0},
    {"bmm", Formula::kProduct, 0},
    {"addmm", Formula::kProduct, 1},
    {"addmm_", Formula::kProduct, 1},
    {"_addmm_activation", Formula::kProduct, 1},
    {"baddbmm", Formula::kProduct, 1},
    {"baddbmm_", Formula::kProduct, 1},
    {"matmul", Formula::kProduct, 0},
    {"linear", Formula::kProduct, 0},
    {"mkldnn_linear", Formula::kProduct, 0},
    {"mv", Formula::kProduct, 0},
    {"addmv", Formula::kProduct, 1},
    {"dot", Formula::kProduct, 0},
    {"vdot", Formula::kProduct, 0},
    {"_scaled_mm", Formula::kProduct, 0},
    {"_int_mm", Formula::kProduct, 0},
    {"conv1d", Formula::kConvolution, 0, 1},
    {"conv2d", Formula::kConvolution, 0, 1},
    {"conv3d", Formula::kConvolution, 0, 1},
    {"convolution", Formula::kConvolution, 0, 1},
    {"_convolution", Formula::kConvolution, 0, 1},
    {"convolution_overrideable", Formula::kConvolution, 0, 1},
    {"cudnn_convolution", Formula::kConvolution, 0, 1},
    {"cudnn_convolution_relu", Formula::kConvolution, 0, 1},
    {"cudnn_convolution_add_relu", Formula::kConvolution, 0, 1},
    {"mkldnn_convolution", Formula::kConvolution, 0, 1},
    {"miopen_convolution", Formula::kConvolution, 0, 1},
    {"miopen_depthwise_convolution", Formula::kConvolution, 0, 1},
    {"thnn_conv2d", Formula::kConvolution, 0, 1},
    {"_slow_conv2d_forward", Formula::kConvolution, 0, 1},
    {"slow_conv3d_forward", Formula::kConvolution, 0, 1},
    {"_conv_depthwise2d", Formula::kConvolution, 0, 1},
    {"conv_depthwise3d", Formula::kConvolution, 0, 1},
    {"convolution_backward", Formula::kConvolutionBack, 0, 2},
    {"convolution_backward_overrideable", Formula::kConvolutionBack, 0, 2},
    {"_scaled_dot_product_flash_attention", Formula::kAttention, 0},
    {"_scaled_dot_product_flash_attention_for_cpu", Formula::kAttention, 0},
    {"_scaled_dot_product_efficient_attention", Formula::kAttention, 0},
    {"_scaled_dot_product_cudnn_attention", Formula::kAttention, 0},
    {"_scaled_dot_product_flash_attention_backward", Formula::kAttentionBack, 1},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", Formula::kAttentionBack, 1},
    {"_scaled_dot_product_efficient_attention_backward", Formula::kAttentionBack, 1},
    {"_scaled_dot_product_cudnn_attention_backward", Formula::kAttentionBack, 1},
    {"_flash_attention_forward", Formula::kAttentionByLength, 0},
    {"_efficient_attention_forward", Formula::kAttentionByLength, 0},
    {"_flash_attention_backward", Formula::kAttentionBackByLength, 1},
    {"_efficient_attention_backward", Formula::kAttentionBackByLength, 1},
    {"embedding", Formula::kLookup},
    {"index_select", Formula::kLookup},
    {"index", Formula::kLookup},
    {"gather", Formula::kLookup},
    {"take", Formula::kLookup},
    {"embedding_bag", Formula::kBag},
    {"_embedding_bag", Formula::kBag},
    {"_embedding_bag_forward_only", Formula::kBag},
    {"empty", Formula::kNothing},
    {"empty_like", Formula::kNothing},
    {"empty_strided", Formula::kNothing},
    {"new_empty", Formula::kNothing},
    {"new_empty_strided", Formula::kNothing},
    {"resize_", Formula::kNothing},
    {"set_", Formula::kNothing},
    {"resolve_conj", Formula::kNothing},
    {"resolve_neg", Formula::kNothing},
    {"detach_", Formula::kNothing},
    {"lift_fresh", Formula::kNothing},
    {"item", Formula::kNothing},
    {"contiguous", Formula::kNothing},  // an operator below copies
    {"to", Formula::kNothing},
    {"reshape", Formula::kNothing},
});

// Multiplies recorded numbers with a bound; beyond it there is no cost.
std::optional<uint64_t> Times(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  uint64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

std::optional<uint64_t> Elements(std::span<const int64_t> shape) {
  std::optional<uint64_t> elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    elements = Times(elements, static_cast<uint64_t>(extent));
  }
  return elements;
}

template <typename Fn>
void ForEachUse(const Trace& trace, std::span<const Value> values, Fn fn) {
  ForEachTensor(trace, values, [&](TensorId id) { fn(trace.tensor(id)); });
}

// FBGEMM has an operator per optimizer.
constexpr std::string_view kFbgemmLookup = "fbgemm::split_embedding_codegen_lookup_";
constexpr FormulaRow kFbgemmRow = {"", Formula::kBag};

const FormulaRow* FormulaOf(std::string_view name) {
  if (name.starts_with(kFbgemmLookup)) return &kFbgemmRow;
  constexpr std::string_view kAten = "aten::";
  if (!name.starts_with(kAten)) return nullptr;
  name.remove_prefix(kAten.size());
  const auto* row = std::ranges::find(kFormulas, name, &FormulaRow::name);
  return row == kFormulas.end() ? nullptr : row;
}

class CostFinder {
 public:
  CostFinder(const Trace& trace, NodeId node) : trace_(trace), node_(node) {}

  std::optional<OperatorCost> Find(const FormulaRow* formula) const {
    if (formula != nullptr && formula->formula == Formula::kNothing) return OperatorCost{};
    bool shapes = false;
    const auto in = Sum(trace_.inputs(node_), shapes);
    const auto out = Sum(trace_.outputs(node_), shapes);
    if (!in || !out || !shapes) return std::nullopt;
    if (formula == nullptr && IsView()) return OperatorCost{};
    OperatorCost cost = {.ops = out->ops, .bytes = 0};
    if (__builtin_add_overflow(in->bytes, out->bytes, &cost.bytes)) return std::nullopt;
    if (formula != nullptr) {
      cost.bytes -= Unread(formula->formula, out->bytes);
      if (const auto ops = Ops(*formula, out->ops)) cost.ops = *ops;
    }
    return cost;
  }

 private:
  using Shape = std::span<const int64_t>;

  // Returns elements and bytes of all tensors of known shape; nullopt if they are implausible.
  std::optional<OperatorCost> Sum(std::span<const Value> values, bool& shapes) const {
    std::optional<OperatorCost> sum = OperatorCost{};
    ForEachUse(trace_, values, [&](const TensorUse& use) {
      if (!use.shape || !sum) return;
      shapes = true;
      const auto elements = Elements(trace_.ints(use.shape));
      const auto bytes =
          Times(elements, static_cast<uint64_t>(std::max(use.element_bytes, int64_t{0})));
      if (!bytes || __builtin_add_overflow(sum->ops, *elements, &sum->ops) ||
          __builtin_add_overflow(sum->bytes, *bytes, &sum->bytes)) {
        sum.reset();
      }
    });
    return sum;
  }

  // Returns the unread bytes of the largest inputs, the tables of a lookup.
  uint64_t Unread(Formula formula, uint64_t out_bytes) const {
    if (formula != Formula::kLookup && formula != Formula::kBag) return 0;
    const auto elements_of = [&](const TensorUse& use) {
      return use.shape ? Elements(trace_.ints(use.shape)).value_or(0) : 0;
    };
    uint64_t table = 0;    // elements of a table
    uint64_t indices = 0;  // elements of the next largest input
    ForEachUse(trace_, trace_.inputs(node_), [&](const TensorUse& use) {
      const uint64_t elements = elements_of(use);
      if (elements > table) indices = std::exchange(table, elements);
      if (elements < table) indices = std::max(indices, elements);
    });
    const auto out = ShapeOf(trace_.outputs(node_), 0);
    uint64_t unread = 0;
    ForEachUse(trace_, trace_.inputs(node_), [&](const TensorUse& use) {
      if (elements_of(use) != table || use.element_bytes <= 0) return;
      const auto element = static_cast<uint64_t>(use.element_bytes);
      uint64_t read = out_bytes;
      if (formula == Formula::kBag && out && !out->empty() && out->back() > 0) {
        const auto row = static_cast<uint64_t>(out->back());
        read = Times(Times(indices, row), element).value_or(UINT64_MAX);
      }
      unread += table * element - std::min(table * element, read);
    });
    return unread;
  }

  // Returns true if the output is another tensor in the memory of an input.
  bool IsView() const {
    bool any = false;
    bool all = true;
    ForEachUse(trace_, trace_.outputs(node_), [&](const TensorUse& out) {
      bool found = false;
      ForEachUse(trace_, trace_.inputs(node_), [&](const TensorUse& in) {
        found |= in.storage != 0 && in.storage == out.storage && in.tensor != out.tensor;
      });
      any = true;
      all &= found;
    });
    return any && all;
  }

  std::optional<Shape> ShapeOf(std::span<const Value> values, size_t index) const {
    if (index >= values.size() || values[index].kind != ValueKind::kTensor) return std::nullopt;
    const TensorUse& use = trace_.tensor(values[index].as_tensor());
    if (!use.shape) return std::nullopt;
    return trace_.ints(use.shape);
  }
  std::optional<Shape> Input(size_t index) const { return ShapeOf(trace_.inputs(node_), index); }

  std::optional<uint64_t> Ops(const FormulaRow& row, uint64_t out_elements) const {
    switch (row.formula) {
      case Formula::kProduct: {
        const auto left = Input(row.a);
        if (!left || left->empty() || left->back() < 0) return std::nullopt;
        return Times(Times(2, out_elements), static_cast<uint64_t>(left->back()));
      }
      case Formula::kConvolution: {
        const auto out = ShapeOf(trace_.outputs(node_), 0);
        return out ? Convolution(Input(row.a), Input(row.b), *out) : std::nullopt;
      }
      case Formula::kConvolutionBack: {
        const auto grad = Input(row.a);
        const auto one = grad ? Convolution(Input(1), Input(row.b), *grad) : std::nullopt;
        return Times(one, Gradients());
      }
      case Formula::kAttention: return Attention(row.a, 2, 1, 1, 1);
      case Formula::kAttentionBack: return Attention(row.a, 2, 1, 3, 2);
      case Formula::kAttentionByLength: return Attention(row.a, 1, 2, 1, 1);
      case Formula::kAttentionBackByLength: return Attention(row.a, 1, 2, 3, 2);
      case Formula::kLookup:
      case Formula::kBag: return std::nullopt;
      case Formula::kNothing: return 0;
    }
    return std::nullopt;
  }

  // Each element of `out` (of the input, if transposed) is multiplied by the weights of one
  // channel.
  std::optional<uint64_t> Convolution(std::optional<Shape> input, std::optional<Shape> weight,
                                      Shape out) const {
    if (!input || !weight || weight->empty() || weight->front() <= 0) return std::nullopt;
    const auto weights = Elements(*weight);
    if (!weights) return std::nullopt;
    const auto per_element = *weights / static_cast<uint64_t>(weight->front());
    return Times(Times(2, Elements(IsTransposed() ? *input : out)), per_element);
  }

  // The argument before the output padding is the first boolean in all convolutions that have one.
  bool IsTransposed() const {
    const auto inputs = trace_.inputs(node_);
    const auto flag = std::ranges::find(inputs, ValueKind::kBool, &Value::kind);
    return flag != inputs.end() && flag->as_bool() && IsGeneralConvolution();
  }
  bool IsGeneralConvolution() const {
    constexpr std::array<std::string_view, 5> kNames = {
        "aten::convolution", "aten::_convolution", "aten::convolution_overrideable",
        "aten::convolution_backward", "aten::convolution_backward_overrideable"};
    return std::ranges::count(kNames, trace_.name(node_)) != 0;
  }

  // Returns the number of computed gradients among those of input and weight.
  uint64_t Gradients() const {
    uint64_t count = 0;
    const auto outputs = trace_.outputs(node_);
    for (size_t i = 0; i < std::min<size_t>(outputs.size(), 2); ++i) {
      if (outputs[i].kind != ValueKind::kTensor) continue;
      count += trace_.tensor(outputs[i].as_tensor()).storage != 0 ? 1 : 0;
    }
    return count;
  }

  // Products of length x length with the depth of the keys, and with that of the values.
  std::optional<uint64_t> Attention(size_t query, size_t length, size_t heads, uint64_t by_keys,
                                    uint64_t by_values) const {
    constexpr size_t kDims = 4;
    const auto q = Input(query);
    const auto k = Input(query + 1);
    const auto v = Input(query + 2);
    for (const auto& shape : {q, k, v}) {
      if (!shape || shape->size() != kDims || std::ranges::min(*shape) < 0) return std::nullopt;
    }
    const auto at = [](Shape shape, size_t dim) { return static_cast<uint64_t>(shape[dim]); };
    const auto pairs =
        Times(Times(at(*q, 0), at(*q, heads)), Times(at(*q, length), at(*k, length)));
    const auto keys = Times(at(*q, 3), by_keys);
    const auto values = Times(at(*v, 3), by_values);
    uint64_t depth = 0;
    if (!keys || !values || __builtin_add_overflow(*keys, *values, &depth)) return std::nullopt;
    return Times(Times(2, pairs), depth);
  }

  const Trace& trace_;
  NodeId node_;
};

bool CountsOps(const FormulaRow* row) {
  return row != nullptr && row->formula != Formula::kNothing && row->formula != Formula::kLookup &&
         row->formula != Formula::kBag;
}

// Work of the operators below a node.
struct Below {
  uint64_t bytes = 0;  // max bytes of one operator
  bool formula = false;
};

}  // namespace

std::vector<std::optional<OperatorCost>> OperatorCosts(const Trace& trace) {
  std::vector<std::optional<OperatorCost>> costs(trace.node_count());
  std::vector<Below> below(trace.node_count());
  const std::vector<NodeId> order = TopDown(trace);
  for (size_t i = order.size(); i-- > 0;) {
    const NodeId node = order[i];
    Below up = below[node.index()];
    if (trace.kind(node) == NodeKind::kOperator && trace.place(node) != Place::kDevice) {
      const FormulaRow* formula = FormulaOf(trace.name(node));
      const bool counts = CountsOps(formula);
      auto& cost = costs[node.index()];
      cost = CostFinder(trace, node).Find(counts && up.formula ? nullptr : formula);
      if (cost) {
        cost->done_below = up.bytes != 0 && up.bytes >= cost->bytes;
        if (counts) cost->done_below = up.formula;
        up.bytes = std::max(up.bytes, cost->bytes);
      }
      up.formula |= counts;
    }
    if (const NodeId parent = trace.parent(node)) {
      below[parent.index()].bytes = std::max(below[parent.index()].bytes, up.bytes);
      below[parent.index()].formula |= up.formula;
    }
  }
  return costs;
}

Work WorkOf(const Trace& trace, std::span<const double> weights) {
  Work work;
  const auto costs = OperatorCosts(trace);
  ForEachNode(trace, [&](NodeId node) {
    if (trace.kind(node) != NodeKind::kOperator || trace.place(node) == Place::kDevice) return;
    const auto& cost = costs[node.index()];
    if (!cost) {
      ++work.without_shapes;
    } else if (!cost->done_below) {
      const double weight = weights.empty() ? 1 : weights[node.index()];
      work.flop += static_cast<double>(cost->ops) * weight;
      work.bytes += static_cast<double>(cost->bytes) * weight;
    }
  });
  return work;
}

bool IsMatrixOperator(std::string_view base_name) {
  const FormulaRow* row = FormulaOf(base_name);
  return row != nullptr && row->formula < Formula::kLookup;
}

}  // namespace etude
