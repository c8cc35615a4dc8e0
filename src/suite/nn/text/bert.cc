#include "src/suite/nn/text/bert.h"

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kBertEpsilon = 1e-12;  // of norms

}  // namespace

Bert::Bert(const Scope& scope, const BertShape& shape)
    : weights_(&scope.weights()),
      shape_(shape),
      words_(scope["words"], shape.words, shape.width),
      places_(scope["places"], shape.places, shape.width),
      parts_(scope["parts"], 2, shape.width),
      norm_(scope["norm"], shape.width, kBertEpsilon),
      pooler_(scope["pooler"], shape.width, shape.width),
      next_(scope["next"], shape.width, 2),
      transform_(scope["transform"], shape.width, shape.width),
      transform_norm_(scope["transform_norm"], shape.width, kBertEpsilon),
      bias_(scope.Parameter("bias", Zeros({shape.words}))) {
  const TransformerLayerShape layer{.width = shape.width,
                                    .heads = shape.heads,
                                    .hidden = shape.hidden,
                                    .gelu = true,
                                    .epsilon = kBertEpsilon,
                                    .dropped = shape.dropped};
  for (int64_t i = 0; i < shape.layers; ++i) layers_.emplace_back(scope["layers"][i], layer);
  const at::NoGradGuard no_gradients;
  for (const Weights::Entry& entry : weights_->entries()) {
    const bool is_norm = entry.name.find("norm") != std::string::npos;
    if (is_norm) continue;
    if (entry.value.dim() == 2) {
      entry.value.copy_(Normal(entry.value.sizes(), 0, shape.deviation));
    } else {
      entry.value.zero_();
    }
  }
}

at::Tensor Bert::operator()(const at::Tensor& text, const at::Tensor& parts,
                            const at::Tensor& mask) const {
  const at::Tensor sum = words_(text) + places_.weight().slice(0, 0, text.size(1)) + parts_(parts);
  at::Tensor x = Dropout(norm_(sum), shape_.dropped, weights_->training());
  for (const TransformerLayer& layer : layers_) x = layer(x, mask);
  return x;
}

at::Tensor Bert::WordLogits(const at::Tensor& x) const {
  const at::Tensor transformed = transform_norm_(Gelu(transform_(x)));
  return (transformed.matmul(words_.weight().t()) + bias_).to(at::kFloat);
}

at::Tensor Bert::NextLogits(const at::Tensor& x) const {
  return next_(pooler_(x.select(1, 0)).tanh()).to(at::kFloat);
}

}  // namespace etude::suite
