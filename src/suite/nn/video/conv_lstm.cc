#include "src/suite/nn/video/conv_lstm.h"

#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kForgetBias = 1;  // cells start by keeping their values

}  // namespace

ConvLstm::ConvLstm(const Scope& scope, int64_t in, int64_t channels, int64_t kernel,
                   Conv2d::Start start)
    : channels_(channels),
      gates_(scope["gates"], in + channels, 4 * channels,
             {.kernel = {kernel}, .padding = {kernel / 2}}, /*bias=*/true, start) {}

ConvLstm::State ConvLstm::operator()(const at::Tensor& x, const State& before) const {
  State state = before;
  if (!state.hidden.defined()) {
    state.hidden = x.new_zeros({x.size(0), channels_, x.size(2), x.size(3)});
    state.cell = state.hidden;
  }
  const std::vector<at::Tensor> gates = gates_(Cat({x, state.hidden}, 1)).chunk(4, 1);
  const at::Tensor added = gates[0].sigmoid() * gates[1].tanh();
  state.cell = state.cell * (gates[2] + kForgetBias).sigmoid() + added;
  state.hidden = state.cell.tanh() * gates[3].sigmoid();
  return state;
}

}  // namespace etude::suite
