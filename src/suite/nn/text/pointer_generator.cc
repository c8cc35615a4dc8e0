#include "src/suite/nn/text/pointer_generator.h"

#include <limits>

#include "src/suite/data/text/vocabulary.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kWordDeviation = 0.3;
constexpr double kUnseen = -std::numeric_limits<double>::infinity();

}  // namespace

PointerGenerator::PointerGenerator(const Scope& scope, const PointerGeneratorShape& shape)
    : words_(scope["words"], shape.words, shape.width, kWordDeviation),
      encoder_(
          scope["encoder"],
          {.in = shape.width, .hidden = shape.hidden, .bidirectional = true, .batch_first = true}),
      first_hidden_(scope["first_hidden"], 2 * shape.hidden, shape.hidden),
      first_cell_(scope["first_cell"], 2 * shape.hidden, shape.hidden),
      keys_(scope["keys"], 2 * shape.hidden, 2 * shape.hidden, /*bias=*/false),
      asker_(scope["asker"], 2 * shape.hidden, 2 * shape.hidden),
      covered_(scope["covered"], 1, 2 * shape.hidden, /*bias=*/false),
      score_(scope["score"], 2 * shape.hidden, 1, /*bias=*/false),
      past_keys_(scope["past_keys"], shape.hidden, shape.hidden, /*bias=*/false),
      past_asker_(scope["past_asker"], shape.hidden, shape.hidden),
      past_score_(scope["past_score"], shape.hidden, 1, /*bias=*/false),
      input_(scope["input"], 2 * shape.hidden + shape.width, shape.width),
      decoder_(scope["decoder"], shape.width, shape.hidden),
      share_(scope["share"], 5 * shape.hidden + shape.width, 1),
      inner_(scope["inner"], 4 * shape.hidden, shape.hidden),
      outer_(scope["outer"], shape.hidden, shape.words) {}

std::pair<PointerGenerator::Source, PointerGenerator::Written> PointerGenerator::Encode(
    const at::Tensor& text) const {
  const auto [states, last] = encoder_(words_(text));
  const auto first = [](const Linear& layer, const at::Tensor& both_ends) {
    return layer(both_ends.transpose(0, 1).flatten(1)).relu();
  };
  Source source{.states = states, .keys = keys_(states), .mask = text.ne(kPaddingToken)};
  Written written{
      .state = {.hidden = first(first_hidden_, last.hidden), .cell = first(first_cell_, last.cell)},
      .context = states.new_zeros({states.size(0), states.size(2)}),
      .coverage = states.new_zeros(text.sizes())};
  return {std::move(source), std::move(written)};
}

PointerGenerator::Step PointerGenerator::operator()(const at::Tensor& word, const Source& source,
                                                    Written& written) const {
  const at::Tensor x = input_(Cat({written.context, word}, 1));
  written.state = decoder_(x, written.state);
  const at::Tensor& hidden = written.state.hidden;
  const at::Tensor both = Cat({hidden, written.state.cell}, 1);
  const at::Tensor asked =
      source.keys + asker_(both).unsqueeze(1) + covered_(written.coverage.unsqueeze(2));
  const at::Tensor scores =
      score_(asked.tanh()).squeeze(2).masked_fill(source.mask.logical_not(), kUnseen);
  const at::Tensor attention = scores.softmax(1);
  written.context = attention.unsqueeze(1).matmul(source.states).squeeze(1);
  const at::Tensor covered = attention.minimum(written.coverage).sum({1});
  written.coverage = written.coverage + attention;
  const at::Tensor past = Past(written);
  written.before.push_back(hidden);
  written.keys.push_back(past_keys_(hidden));
  const at::Tensor share = share_(Cat({written.context, past, both, x}, 1)).squeeze(1).sigmoid();
  return {.features = Cat({hidden, written.context, past}, 1),
          .share = share,
          .attention = attention,
          .covered = covered};
}

at::Tensor PointerGenerator::Past(const Written& written) const {
  const at::Tensor& hidden = written.state.hidden;
  if (written.before.empty()) return hidden.new_zeros(hidden.sizes());
  const at::Tensor asked = (Stack(written.keys, 1) + past_asker_(hidden).unsqueeze(1)).tanh();
  const at::Tensor weights = past_score_(asked).squeeze(2).softmax(1);
  return weights.unsqueeze(1).matmul(Stack(written.before, 1)).squeeze(1);
}

}  // namespace etude::suite
