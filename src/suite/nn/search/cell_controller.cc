#include "src/suite/nn/search/cell_controller.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kLargestLogit = 2.5;
constexpr double kRange = 0.1;  // of initial weights

constexpr int64_t kStart = 0;
constexpr int64_t kFirstActivation = 1;
constexpr int64_t kFirstNode = kFirstActivation + kCellActivations;

// Returns an index by its probability.
int64_t DrawIndex(const at::Tensor& log_probabilities, RandomStream& random) {
  const at::Tensor chances = log_probabilities.detach().cpu().to(at::kDouble).exp().contiguous();
  const auto* chance = chances.const_data_ptr<double>();
  double rest = random.UniformDouble();
  int64_t index = 0;
  while (index + 1 < chances.numel() && rest >= chance[index]) rest -= chance[index++];
  return index;
}

}  // namespace

CellController::CellController(const Scope& scope, const CellControllerShape& shape)
    : shape_(shape),
      choices_(scope["choices"], kFirstNode + shape.nodes - 1, shape.hidden),
      lstm_(scope["lstm"], shape.hidden, shape.hidden) {
  for (int64_t node = 0; node < shape.nodes; ++node) {
    if (node > 0) previous_.emplace_back(scope["previous"][node], shape.hidden, node);
    activations_.emplace_back(scope["activations"][node], shape.hidden, kCellActivations);
  }
  const at::NoGradGuard no_gradients;
  for (const auto& [name, weight] : scope.weights().Below(scope.name())) {
    const bool is_output_bias = weight.dim() == 1 && !name.starts_with("lstm");
    weight.copy_(is_output_bias ? Zeros(weight.sizes()) : Uniform(weight.sizes(), -kRange, kRange));
  }
}

CellController::Drawn CellController::Draw(RandomStream& random) const {
  const at::Tensor& table = choices_.weight();
  const at::Tensor nothing = table.new_zeros({1, shape_.hidden});
  LstmCell::State state{.hidden = nothing, .cell = nothing};
  Drawn drawn;
  int64_t last = kStart;
  const auto choose = [&](const Linear& layer) {
    state = lstm_(table.narrow(0, last, 1), state);
    const at::Tensor logits = layer(state.hidden).to(at::kFloat) / shape_.temperature;
    const at::Tensor log_probabilities = (logits.tanh() * kLargestLogit).log_softmax(1).squeeze(0);
    const int64_t choice = DrawIndex(log_probabilities, random);
    const at::Tensor own = log_probabilities.select(0, choice);
    const at::Tensor entropy = (log_probabilities.exp() * log_probabilities).sum().neg();
    drawn.log_probability = drawn.log_probability.defined() ? drawn.log_probability + own : own;
    drawn.entropy = drawn.entropy.defined() ? drawn.entropy + entropy : entropy;
    return choice;
  };
  for (size_t node = 0; node < activations_.size(); ++node) {
    CellNode one;
    if (node > 0) {
      one.previous = choose(previous_[node - 1]);
      last = kFirstNode + one.previous;
    }
    const int64_t activation = choose(activations_[node]);
    last = kFirstActivation + activation;
    one.activation = static_cast<CellActivation>(activation);
    drawn.cell.push_back(one);
  }
  return drawn;
}

}  // namespace etude::suite
