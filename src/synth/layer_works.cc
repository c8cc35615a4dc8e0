#include "src/synth/layer_works.h"

#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

// Per element.
int64_t NormFlops(NormKind kind) {
  switch (kind) {
    case NormKind::kRmsNorm: return 4;
    // Mean (2), subtract, square, sum, multiply by the inverse deviation, scale.
    case NormKind::kLayerNormNoOffset: return 6;
    case NormKind::kLayerNorm: return 7;
  }
  return 0;
}

int64_t NormBackwardFlops(NormKind kind) {
  switch (kind) {
    case NormKind::kRmsNorm: return 9;
    case NormKind::kLayerNormNoOffset: return 12;
    case NormKind::kLayerNorm: return 13;
  }
  return 0;
}

// Empty if products differ in size.
ProductShape ShapeOf(const MatrixProduct& product, int64_t inner, int64_t columns) {
  const std::optional<int64_t> rows = product.RowsOfEach();
  return rows ? ProductShape{product.count, *rows, inner, columns} : ProductShape{};
}

}  // namespace

LayerWorks::LayerWorks(const TransformerModel& model, const LayerPlan& plan)
    : model_(model),
      plan_(plan),
      element_(ElementBytes(model.weights).value_or(0)),
      gradient_(ElementBytes(model.gradients).value_or(0)),
      tokens_(plan.sequences * (PassTokens(model, plan) / plan.context)),
      shares_tokens_(plan.tensor > 1 && plan.sequence_parallel),
      shared_tokens_(shares_tokens_ ? tokens_ / plan.tensor : tokens_) {}

LayerWorks::In LayerWorks::Add(LayerWork work) {
  works_.push_back(std::move(work));
  return {works_.size() - 1};
}

LayerWorks::In LayerWorks::Elementwise(std::string name, In in, int64_t count, int64_t flops,
                                       ElementCounts elements) {
  return Add({.name = std::move(name),
              .inputs = std::move(in),
              .flops = flops * count,
              .read = Bytes{elements.read * element_},
              .written = Bytes{elements.written * element_},
              .kept = Bytes{elements.kept * element_}});
}

LayerWorks::In LayerWorks::Collective(std::string name, In in, CollectiveType type, LayerAxis axis,
                                      int64_t bytes) {
  return Add({.name = std::move(name),
              .inputs = std::move(in),
              .collective = type,
              .axis = axis,
              .bytes = Bytes{bytes}});
}

LayerWorks::In LayerWorks::Send(std::string name, In in, int64_t bytes) {
  return Add({.name = std::move(name),
              .inputs = std::move(in),
              .message = LayerMessage::kToNext,
              .axis = LayerAxis::kContext,
              .bytes = Bytes{bytes}});
}

LayerWorks::In LayerWorks::Receive(std::string name, In in, int64_t bytes) {
  return Add({.name = std::move(name),
              .inputs = std::move(in),
              .message = LayerMessage::kFromPrevious,
              .axis = LayerAxis::kContext,
              .bytes = Bytes{bytes}});
}

LayerWorks::In LayerWorks::Multiply(std::string name, In in, const MatrixProduct& product,
                                    int64_t kept) {
  return Add({.name = std::move(name),
              .inputs = std::move(in),
              .flops = product.flops() + (product.bias ? product.outputs() : 0),
              .matrix_flops = product.flops(),
              .product = ShapeOf(product, product.in, product.out),
              .read = Bytes{(product.inputs() + product.weights() + product.biases()) * element_},
              .written = Bytes{product.outputs() * element_},
              .kept = Bytes{kept * element_}});
}

LayerWorks::In LayerWorks::InputGradient(const std::string& name, In in,
                                         const MatrixProduct& product) {
  return Add({.name = name + " input gradient",
              .inputs = std::move(in),
              .flops = product.flops(),
              .matrix_flops = product.flops(),
              .product = ShapeOf(product, product.out, product.in),
              .read = Bytes{(product.outputs() + product.weights()) * element_},
              .written = Bytes{product.inputs() * element_}});
}

void LayerWorks::WeightGradient(const std::string& name, In in, const MatrixProduct& product,
                                int64_t gathered) {
  if (gathered != 0 && shares_tokens_) {
    const In all = Collective(name + " input all_gather", in, CollectiveType::kAllGather,
                              LayerAxis::kTensor, gathered);
    works_.back().for_weights = true;
    in.push_back(all.front());
  }
  const int64_t weights = product.weights() + product.biases();
  const std::optional<int64_t> rows = product.RowsOfEach();
  std::vector<std::string> given;
  if (product.bias) given.push_back(name + " bias");
  given.push_back(name);
  Add({.name = name + " weight gradient",
       .inputs = std::move(in),
       .for_weights = true,
       .gives_gradients = std::move(given),
       .flops = product.flops() + (product.bias ? product.outputs() : 0),
       .matrix_flops = product.flops(),
       .product =
           rows ? ProductShape{product.count, product.out, *rows, product.in} : ProductShape{},
       .read = Bytes{(product.inputs() + product.outputs()) * element_ + weights * gradient_},
       .written = Bytes{weights * gradient_}});
}

void LayerWorks::VectorGradient(const std::string& name, In in, int64_t elements, int64_t size) {
  Add({.name = name + " weight gradient",
       .inputs = std::move(in),
       .for_weights = true,
       .gives_gradients = {name},
       .flops = elements,
       .read = Bytes{elements * element_ + size * gradient_},
       .written = Bytes{size * gradient_}});
}

LayerWorks::In LayerWorks::GatherTokens(const std::string& name, In in,
                                        std::optional<int64_t> width) {
  if (!shares_tokens_) return in;
  return Collective(name + " all_gather", std::move(in), CollectiveType::kAllGather,
                    LayerAxis::kTensor, shared_tokens_ * width.value_or(model_.hidden) * element_);
}

LayerWorks::In LayerWorks::SumTokens(const std::string& name, In in, std::optional<int64_t> width) {
  if (plan_.tensor == 1) return in;
  const CollectiveType type =
      shares_tokens_ ? CollectiveType::kReduceScatter : CollectiveType::kAllReduce;
  return Collective(fmt::format("{} {}", name, Name(type)), std::move(in), type, LayerAxis::kTensor,
                    tokens_ * width.value_or(model_.hidden) * element_);
}

LayerWorks::In LayerWorks::Norm(const std::string& name, In in, TokenSize of) {
  const int64_t width = of.width.value_or(model_.hidden);
  const int64_t size = of.tokens.value_or(shared_tokens_) * width;
  return Elementwise(name, std::move(in), size, NormFlops(model_.norm),
                     {.read = size + NormElements(model_, width), .written = size, .kept = size});
}

LayerWorks::In LayerWorks::NormBackward(const std::string& name, In in, int64_t addends,
                                        std::optional<int64_t> width) {
  const int64_t weights = NormElements(model_, width.value_or(model_.hidden));
  const int64_t size = shared_tokens_ * width.value_or(model_.hidden);
  return Add({.name = name + " backward",
              .inputs = std::move(in),
              .gives_gradients = {name},
              .flops = (NormBackwardFlops(model_.norm) + addends) * size,
              .read = Bytes{((2 + addends) * size + weights) * element_ + weights * gradient_},
              .written = Bytes{size * element_ + weights * gradient_}});
}

void LayerWorks::Residual(const std::string& name, In in, int64_t branches) {
  const bool bias = model_.biases;
  const int64_t size = SharedSize();
  Elementwise(name, std::move(in), size, branches + (bias ? 1 : 0),
              {.read = (1 + branches) * size + (bias ? model_.hidden : 0), .written = size});
}

void LayerWorks::BiasGradient(const std::string& name, const In& in) {
  if (model_.biases) VectorGradient(name, in, SharedSize(), model_.hidden);
}

LayerWorks::In LayerWorks::Again(const LayerWorks& forward, size_t begin, size_t end,
                                 const In& in) {
  const size_t first = works_.size();
  In last = in;
  for (size_t i = begin; i < end; ++i) {
    LayerWork work = forward.works()[i];
    work.name += " again";
    work.kept = Bytes{};
    In inputs;
    for (const size_t input : work.inputs) {
      if (input >= begin) inputs.push_back(input - begin + first);
    }
    work.inputs = inputs.empty() ? in : std::move(inputs);
    last = Add(std::move(work));
  }
  return last;
}

}  // namespace etude
