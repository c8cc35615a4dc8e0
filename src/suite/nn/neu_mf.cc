#include "src/suite/nn/neu_mf.h"

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kDeviation = 0.01;  // of embeddings, as in the authors' program

}  // namespace

NeuMf::NeuMf(const Scope& scope, const NeuMfShape& shape)
    : factors_of_users_(scope["mf_user_embed"], shape.users, shape.factors, kDeviation),
      factors_of_items_(scope["mf_item_embed"], shape.items, shape.factors, kDeviation),
      users_(scope["mlp_user_embed"], shape.users, shape.widths.front() / 2, kDeviation),
      items_(scope["mlp_item_embed"], shape.items, shape.widths.front() / 2, kDeviation),
      answer_(scope["final"], shape.factors + shape.widths.back(), 1) {
  for (size_t i = 1; i < shape.widths.size(); ++i) {
    layers_.emplace_back(scope["mlp"][static_cast<int64_t>(i) - 1], shape.widths[i - 1],
                         shape.widths[i]);
  }
}

at::Tensor NeuMf::operator()(const at::Tensor& users, const at::Tensor& items) const {
  const at::Tensor everyone = users.unsqueeze(1).expand_as(items);
  const at::Tensor product = factors_of_users_(users).unsqueeze(1) * factors_of_items_(items);
  at::Tensor x = Cat({users_(everyone), items_(items)}, 2);
  for (const Linear& layer : layers_) x = layer(x).relu();
  return answer_(Cat({product, x}, 2)).squeeze(2);
}

}  // namespace etude::suite
