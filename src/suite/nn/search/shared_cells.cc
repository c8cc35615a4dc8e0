#include "src/suite/nn/search/shared_cells.h"

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

at::Tensor Activated(const at::Tensor& x, CellActivation activation) {
  switch (activation) {
    case CellActivation::kTanh: return x.tanh();
    case CellActivation::kRelu: return x.relu();
    case CellActivation::kIdentity: return x;
    case CellActivation::kSigmoid: return x.sigmoid();
  }
  return x;
}

// Returns `before`, moved to the activated second half of `sums` as far as the first half opens the
// gate.
at::Tensor Highway(const at::Tensor& before, const at::Tensor& sums, CellActivation activation) {
  const std::vector<at::Tensor> halves = sums.to(at::kFloat).chunk(2, 1);
  return before.lerp(Activated(halves[1], activation), halves[0].sigmoid());
}

}  // namespace

SharedCells::SharedCells(const Scope& scope, const SharedCellsShape& shape)
    : weights_(&scope.weights()),
      shape_(shape),
      words_(scope["words"], shape.words, shape.width),
      input_(scope["input"], shape.width, 2 * shape.width),
      state_(scope["state"], shape.width, 2 * shape.width, /*bias=*/false),
      norm_(scope["norm"], shape.width),
      bias_(scope.Parameter("bias", Zeros({shape.words}))) {
  for (int64_t node = 1; node < shape.nodes; ++node) {
    for (int64_t previous = 0; previous < node; ++previous) {
      between_.emplace_back(scope["nodes"][node][previous], shape.width, 2 * shape.width,
                            /*bias=*/false);
    }
  }
  const at::NoGradGuard no_gradients;
  const auto draw = [](const at::Tensor& weight, double range) {
    weight.copy_(Uniform(weight.sizes(), -range, range));
  };
  draw(words_.weight(), shape.word_range);
  draw(input_.weight(), shape.range);
  draw(input_.bias(), shape.range);
  draw(state_.weight(), shape.range);
  for (const Linear& layer : between_) draw(layer.weight(), shape.range);
}

at::Tensor SharedCells::operator()(const at::Tensor& words, const CellArchitecture& cell,
                                   at::Tensor& state) const {
  const at::Tensor inputs = input_(Embed(words));
  if (!state.defined()) state = words_.weight().new_zeros({words.size(1), shape_.width});
  const std::vector<int64_t> loose = LooseEnds(cell);
  std::vector<at::Tensor> results;
  for (int64_t step = 0; step < words.size(0); ++step) {
    std::vector<at::Tensor> nodes = {
        Highway(state, inputs.select(0, step) + state_(state), cell.front().activation)};
    for (size_t node = 1; node < cell.size(); ++node) {
      const int64_t previous = cell[node].previous;
      const at::Tensor before = nodes[static_cast<size_t>(previous)];
      nodes.push_back(Highway(before, Between(previous, static_cast<int64_t>(node))(before),
                              cell[node].activation));
    }
    at::Tensor sum = nodes[static_cast<size_t>(loose.front())];
    for (size_t i = 1; i < loose.size(); ++i) sum = sum + nodes[static_cast<size_t>(loose[i])];
    state = norm_(sum / static_cast<double>(loose.size()));
    results.push_back(state);
  }
  const at::Tensor mask = Mask({words.size(1), shape_.width}, shape_.dropped.output);
  const at::Tensor all = Stack(results, 0);
  return mask.defined() ? all * mask : all;
}

at::Tensor SharedCells::Logits(const at::Tensor& x) const {
  return x.matmul(words_.weight().t()) + bias_;
}

at::Tensor SharedCells::Embed(const at::Tensor& words) const {
  at::Tensor x = words_(words);
  const at::Tensor kept = Mask({shape_.words}, shape_.dropped.words);
  if (kept.defined()) {
    x = x * kept.index_select(0, words.flatten()).view(words.sizes()).unsqueeze(2);
  }
  const at::Tensor mask = Mask({words.size(1), shape_.width}, shape_.dropped.input);
  return mask.defined() ? x * mask : x;
}

at::Tensor SharedCells::Mask(at::IntArrayRef sizes, double share) const {
  if (share == 0 || !weights_->training()) return {};
  return Dropout(Ones(sizes), share, /*training=*/true).to(weights_->device());
}

const Linear& SharedCells::Between(int64_t previous, int64_t node) const {
  return between_[static_cast<size_t>(node * (node - 1) / 2 + previous)];
}

}  // namespace etude::suite
