#include "src/suite/nn/dlrm.h"

#include <cmath>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Initialised like the authors' program: normal with √(2 / (in + out)), biases with √(1 / out).
Linear MakeLayer(const Scope& scope, int64_t in, int64_t out) {
  Linear layer(scope, in, out);
  const auto fill = [](const at::Tensor& weight, double deviation) {
    weight.detach().copy_(Normal(weight.sizes(), 0, deviation));
  };
  fill(layer.weight(), std::sqrt(2 / static_cast<double>(in + out)));
  fill(layer.bias(), std::sqrt(1 / static_cast<double>(out)));
  return layer;
}

}  // namespace

Dlrm::Dlrm(const Scope& scope, const DlrmShape& shape) {
  const auto count = static_cast<int64_t>(shape.tables.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rows = shape.tables[static_cast<size_t>(i)];
    const double largest = 1 / std::sqrt(static_cast<double>(rows));
    tables_.push_back(
        scope["tables"][i].Parameter("weight", Uniform({rows, shape.width}, -largest, largest)));
  }
  for (size_t i = 1; i < shape.bottom.size(); ++i) {
    bottom_.push_back(MakeLayer(scope["bottom"][static_cast<int64_t>(i) - 1], shape.bottom[i - 1],
                                shape.bottom[i]));
  }
  const int64_t vectors = count + 1;
  std::vector<int64_t> pairs;
  for (int64_t row = 0; row < vectors; ++row) {
    for (int64_t column = 0; column < row; ++column) pairs.push_back(row * vectors + column);
  }
  pairs_ = FromValues(pairs, {std::ssize(pairs)}).to(scope.device());
  int64_t in = shape.width + std::ssize(pairs);
  for (size_t i = 0; i < shape.top.size(); ++i) {
    top_.push_back(MakeLayer(scope["top"][static_cast<int64_t>(i)], in, shape.top[i]));
    in = shape.top[i];
  }
}

at::Tensor Dlrm::operator()(const at::Tensor& numbers, const at::Tensor& categories) const {
  at::Tensor x = numbers;
  for (const Linear& layer : bottom_) x = layer(x).relu();
  std::vector<at::Tensor> vectors = {x};
  for (size_t i = 0; i < tables_.size(); ++i) {
    vectors.push_back(tables_[i].index_select(0, categories.select(1, static_cast<int64_t>(i))));
  }
  const at::Tensor all = Stack(vectors, 1);
  const at::Tensor products = all.bmm(all.transpose(1, 2)).flatten(1).index_select(1, pairs_);
  at::Tensor y = Cat({x, products.to(x.scalar_type())}, 1);
  for (size_t i = 0; i + 1 < top_.size(); ++i) y = top_[i](y).relu();
  return top_.back()(y).squeeze(1);
}

}  // namespace etude::suite
