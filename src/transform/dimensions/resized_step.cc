#include "src/transform/dimensions/resized_step.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/transform/dimensions/work_times.h"
#include "src/transform/edit/rewrite.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

class StepResizer {
 public:
  StepResizer(StepDimensions& dimensions, const TensorFactors::Sizes& sizes)
      : trace_(dimensions.trace()),
        flow_(dimensions.flow()),
        tensors_(dimensions.tensors()),
        sizes_(sizes) {}

  Result<ResizedStep> Run(const Limits& limits) {
    ETUDE_ASSIGN_OR_RETURN(
        result_.trace,
        RewriteTrace(trace_, limits, [&](RewrittenNode& node, TraceBuilder& builder) -> Status {
          Resize(node, builder);
          return {};
        }));
    if (tensors_.has_overflow()) {
      return BadInput("found sizes whose product is 2^63 or more, expected smaller ones");
    }
    ETUDE_ASSIGN_OR_RETURN(TimedStep timed, WithTimesByWork(trace_, result_.trace, limits));
    result_.trace = std::move(timed.trace);
    result_.retimed = timed.retimed;
    result_.is_retimed = std::move(timed.is_retimed);
    return std::move(result_);
  }

 private:
  using Uses = std::span<const DataFlow::Use>;

  void Resize(RewrittenNode& node, TraceBuilder& builder) {
    node_ = node.node;
    builder_ = &builder;
    changed_ = false;
    const auto resize = [&](ValueListId& list, Uses uses) {
      size_t tensors = 0;
      if (!list) return;
      ForEachTensor(trace_, trace_.values(list), [&](TensorId) { ++tensors; });
      if (tensors == 0 || tensors > uses.size()) return;
      next_ = 0;
      list = WithTensors(list, uses);
    };
    resize(node.row.outputs, flow_.outputs(node_));
    const bool has_other_result = changed_;
    resize(node.row.inputs, flow_.inputs(node_));
    if (has_other_result && node.row.inputs && node.row.outputs) ResizeNumbers(node);
    if (changed_ && IsCall(trace_, node_)) ++result_.resized;
  }

  ValueListId WithTensors(ValueListId list, Uses uses) {
    const auto recorded = trace_.values(list);
    std::vector<Value> values(recorded.begin(), recorded.end());
    for (Value& value : values) {
      if (value.kind == ValueKind::kTensor) {
        value = Value::Tensor(value.type, Tensor(uses[next_++]));
      } else if (value.kind == ValueKind::kList) {
        value = Value::List(value.type, WithTensors(value.as_list(), uses));
      }
    }
    return builder_->InternValues(values);
  }

  TensorId Tensor(const DataFlow::Use& use) {
    const auto layout = tensors_.Resized(use, node_, sizes_);
    if (!layout) return use.tensor;
    changed_ = true;
    TensorUse made = trace_.tensor(use.tensor);
    made.numel = layout->numel;
    made.shape = builder_->InternInts(layout->shape);
    if (made.strides) made.strides = builder_->InternInts(layout->strides);
    made.offset = layout->offset;
    made.storage_bytes = layout->storage_bytes;
    return builder_->InternTensor(made);
  }

  // A tensor before and after the change.
  struct Shapes {
    std::span<const int64_t> shape;
    std::span<const int64_t> strides;
    int64_t offset = 0;
  };
  template <typename TraceOrBuilder>
  static std::optional<Shapes> FirstTensor(const TraceOrBuilder& trace, ValueListId list) {
    std::optional<Shapes> first;
    ForEachTensor(trace, trace.values(list), [&](TensorId id) {
      const TensorUse& use = trace.tensor(id);
      if (first || !use.shape) return;
      first = Shapes{.shape = trace.ints(use.shape),
                     .strides = use.strides ? trace.ints(use.strides) : std::span<const int64_t>(),
                     .offset = use.offset};
    });
    return first;
  }

  // Changes numbers that are those of the first result: its sizes, strides and offset, and bounds
  // of a part.
  void ResizeNumbers(RewrittenNode& node) {
    const auto before = FirstTensor(trace_, trace_.output_list(node_));
    const auto after = FirstTensor(*builder_, node.row.outputs);
    const auto input = FirstTensor(trace_, trace_.input_list(node_));
    const auto input_after = FirstTensor(*builder_, node.row.inputs);
    if (!before || !after) return;
    const auto list = builder_->values(node.row.inputs);
    std::vector<Value> values(list.begin(), list.end());
    for (Value& value : values) {
      if (value.kind != ValueKind::kList) continue;
      if (const auto made = Numbers(value.as_list(), before->shape, after->shape)) {
        value = Value::List(value.type, *made);
      } else if (const auto steps = Numbers(value.as_list(), before->strides, after->strides)) {
        value = Value::List(value.type, *steps);
      }
    }
    const std::string_view name = trace_.name(node_);
    if (name.find("layer_norm") != std::string_view::npos ||
        name.find("rms_norm") != std::string_view::npos) {
      for (Value& value : values) {
        if (value.kind != ValueKind::kList) continue;
        const size_t count = builder_->values(value.as_list()).size();
        if (count >= before->shape.size()) continue;
        const auto made =
            Numbers(value.as_list(), before->shape.last(count), after->shape.last(count));
        if (made) value = Value::List(value.type, *made);
      }
    }
    const auto number = [&](size_t index) -> std::optional<int64_t> {
      const bool is_int = index < values.size() && values[index].kind == ValueKind::kInt;
      return is_int ? std::optional(values[index].as_int()) : std::nullopt;
    };
    const auto set = [&](size_t index, int64_t to) {
      values[index] = Value::Int(values[index].type, to);
    };
    const auto dim_of = [&](size_t index) -> std::optional<size_t> {
      const auto dim = number(index);
      const auto rank = static_cast<int64_t>(before->shape.size());
      if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
      return static_cast<size_t>(*dim < 0 ? *dim + rank : *dim);
    };
    if (name == "aten::arange" && number(0) && before->shape.size() == 1 &&
        number(0) == before->shape[0]) {
      set(0, after->shape[0]);
    }
    if (name == "aten::embedding_dense_backward" && !before->shape.empty() &&
        number(2) == before->shape[0]) {
      set(2, after->shape[0]);
    }
    if (name == "aten::as_strided" && number(3) == before->offset) set(3, after->offset);
    if (name == "aten::split" && number(1) && dim_of(2)) set(1, after->shape[*dim_of(2)]);
    const bool is_part = name == "aten::slice" || name == "aten::narrow";
    const bool has_dim = input && input_after && dim_of(1) && *dim_of(1) < input->shape.size() &&
                         *dim_of(1) < input_after->shape.size();
    if (is_part && has_dim) {
      const int64_t from = input->shape[*dim_of(1)];
      const int64_t to = input_after->shape[*dim_of(1)];
      for (const size_t bound : {size_t{2}, size_t{3}}) {
        const auto at = number(bound);
        int64_t scaled = 0;
        const size_t dim = *dim_of(1);
        const bool is_shifted = before->shape[dim] == from - 1 && after->shape[dim] == to - 1;
        if (is_shifted) {
          // All but one place: its length, or its end.
          if (at == from || at == from - 1) set(bound, *at - from + to);
        } else if (at && from > 0 && *at >= 0 && *at <= from &&
                   !__builtin_mul_overflow(*at, to, &scaled) && scaled % from == 0) {
          set(bound, scaled / from);
        }
      }
    }
    node.row.inputs = builder_->InternValues(values);
  }

  // Returns the list `numbers` with those of `after` if it has those of `before`, or -1 in places.
  std::optional<ValueListId> Numbers(ValueListId numbers, std::span<const int64_t> before,
                                     std::span<const int64_t> after) {
    const auto list = builder_->values(numbers);
    if (list.size() != before.size() || list.empty() || after.size() != before.size()) {
      return std::nullopt;
    }
    std::vector<Value> values(list.begin(), list.end());
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].kind != ValueKind::kInt) return std::nullopt;
      const int64_t number = values[i].as_int();
      if (number == -1) continue;
      if (number != before[i]) return std::nullopt;
      values[i] = Value::Int(values[i].type, after[i]);
    }
    return builder_->InternValues(values);
  }

  const Trace& trace_;
  const DataFlow& flow_;
  TensorFactors& tensors_;
  const TensorFactors::Sizes& sizes_;
  TraceBuilder* builder_ = nullptr;
  NodeId node_;
  size_t next_ = 0;       // tensor of the list that is rewritten
  bool changed_ = false;  // whether the current node has other sizes
  ResizedStep result_;
};

}  // namespace

Result<ResizedStep> ResizeStep(StepDimensions& dimensions, const TensorFactors::Sizes& sizes,
                               const Limits& limits) {
  return StepResizer(dimensions, sizes).Run(limits);
}

}  // namespace etude
