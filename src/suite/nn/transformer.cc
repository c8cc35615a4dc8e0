#include "src/suite/nn/transformer.h"

#include <cmath>
#include <limits>

#include "src/suite/data/text/vocabulary.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Returns float [length, width]: alternating sines and cosines of positions, slower from pair to
// pair.
at::Tensor Sines(int64_t length, int64_t width) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(length * width));
  for (int64_t place = 0; place < length; ++place) {
    for (int64_t i = 0; i < width; i += 2) {
      const double rate =
          std::exp(-std::log(1e4) * static_cast<double>(i) / static_cast<double>(width));
      const double angle = static_cast<double>(place) * rate;
      values.push_back(static_cast<float>(std::sin(angle)));
      values.push_back(static_cast<float>(std::cos(angle)));
    }
  }
  return FromValues(values, {length, width});
}

}  // namespace

LayerNorm::LayerNorm(const Scope& scope, int64_t width, double epsilon)
    : epsilon_(epsilon),
      scale_(scope.Parameter("weight", Ones({width}))),
      shift_(scope.Parameter("bias", Zeros({width}))) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return Normalized(x, scale_, shift_, epsilon_);
}

Attention::Attention(const Scope& scope, const TransformerLayerShape& shape)
    : weights_(&scope.weights()),
      heads_(shape.heads),
      dropped_(shape.dropped),
      query_(scope["query"], shape.width, shape.width),
      key_(scope["key"], shape.width, shape.width),
      value_(scope["value"], shape.width, shape.width),
      out_(scope["out"], shape.width, shape.width) {}

at::Tensor Attention::operator()(const at::Tensor& x, const at::Tensor& memory,
                                 const at::Tensor& mask) const {
  const auto split = [&](const at::Tensor& y) {
    return y.unflatten(2, {heads_, y.size(2) / heads_}).transpose(1, 2);
  };
  const at::Tensor query = split(query_(x));
  const double scale = std::sqrt(static_cast<double>(query.size(3)));
  const at::Tensor scores = query.matmul(split(key_(memory)).transpose(2, 3)) / scale;
  const at::Tensor weights =
      scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity()).softmax(3);
  const at::Tensor seen =
      Dropout(weights, dropped_, weights_->training()).matmul(split(value_(memory)));
  return out_(seen.transpose(1, 2).flatten(2));
}

TransformerLayer::TransformerLayer(const Scope& scope, const TransformerLayerShape& shape)
    : weights_(&scope.weights()),
      shape_(shape),
      self_(scope["self"], shape),
      self_norm_(scope["self_norm"], shape.width, shape.epsilon),
      inner_(scope["inner"], shape.width, shape.hidden),
      outer_(scope["outer"], shape.hidden, shape.width),
      norm_(scope["norm"], shape.width, shape.epsilon) {
  if (!shape.decoder) return;
  cross_.emplace(scope["cross"], shape);
  cross_norm_.emplace(scope["cross_norm"], shape.width, shape.epsilon);
}

at::Tensor TransformerLayer::operator()(const at::Tensor& x, const at::Tensor& mask,
                                        const AttendedText* memory) const {
  at::Tensor y = self_norm_(x + Dropped(self_(x, x, mask)));
  if (cross_) y = (*cross_norm_)(y + Dropped((*cross_)(y, memory->x, memory->mask)));
  const at::Tensor inner = inner_(y);
  return norm_(y + Dropped(outer_(shape_.gelu ? Gelu(inner) : inner.relu())));
}

at::Tensor TransformerLayer::Dropped(const at::Tensor& x) const {
  return Dropout(x, shape_.dropped, weights_->training());
}

Transformer::Transformer(const Scope& scope, const TransformerShape& shape)
    : weights_(&scope.weights()),
      shape_(shape),
      words_(scope["words"], shape.words, shape.width,
             1 / std::sqrt(static_cast<double>(shape.width))) {
  TransformerLayerShape layer{
      .width = shape.width, .heads = shape.heads, .hidden = shape.hidden, .dropped = shape.dropped};
  for (int64_t i = 0; i < shape.layers; ++i) encoder_.emplace_back(scope["encoder"][i], layer);
  layer.decoder = true;
  for (int64_t i = 0; i < shape.layers; ++i) decoder_.emplace_back(scope["decoder"][i], layer);
}

AttendedText Transformer::Encode(const at::Tensor& text) const {
  const at::Tensor mask = PaddingMask(text);
  at::Tensor x = Embed(text);
  for (const TransformerLayer& layer : encoder_) x = layer(x, mask);
  return {x, mask};
}

at::Tensor Transformer::Decode(const at::Tensor& before, const AttendedText& memory) const {
  const at::Tensor past =
      Ones({before.size(1), before.size(1)}, at::kBool).tril().to(before.device());
  at::Tensor x = Embed(before);
  for (const TransformerLayer& layer : decoder_) x = layer(x, past, &memory);
  return x;
}

at::Tensor Transformer::Logits(const at::Tensor& x) const {
  return x.matmul(words_.weight().t()).to(at::kFloat);
}

at::Tensor Transformer::Embed(const at::Tensor& text) const {
  const at::Tensor places = Sines(text.size(1), shape_.width).to(text.device());
  const at::Tensor x = words_(text) * std::sqrt(static_cast<double>(shape_.width)) + places;
  return Dropout(x, shape_.dropped, weights_->training());
}

at::Tensor PaddingMask(const at::Tensor& text) {
  return text.ne(kPaddingToken).unsqueeze(1).unsqueeze(1);
}

}  // namespace etude::suite
