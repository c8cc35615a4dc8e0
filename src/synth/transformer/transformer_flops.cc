#include "src/synth/transformer/transformer_flops.h"

#include <vector>

#include "src/base/saturating.h"

namespace etude {
namespace {

int64_t ElementsOf(const std::vector<TransformerWeight>& weights) {
  int64_t sum = 0;
  for (const TransformerWeight& weight : weights) sum += weight.elements();
  return sum;
}

double Real(int64_t value) { return static_cast<double>(value); }

}  // namespace

int64_t MatrixParameterCount(const TransformerModel& model) {
  const int64_t head = model.tied ? model.vocabulary * model.hidden : 0;
  return ActiveParameterCount(model) - ElementsOf(EmbeddingWeights(model)) + head;
}

int64_t StepTokens(const TransformerModel& model, const TransformerPlan& plan) {
  return SaturatingProduct({plan.layer.sequences, plan.pipeline.micro_batches, plan.data,
                            plan.phase == ModelPhase::kDecode ? plan.tokens : model.sequence});
}

double ModelFlops(const TransformerModel& model, const TransformerPlan& plan) {
  const double tokens = Real(StepTokens(model, plan));
  // For a token with one that it attends to, in all layers: a product for the score, one for the
  // sum.
  const double pair =
      2 * Real(model.layers) * Real(model.heads) * Real(model.head_size + model.value_size());
  const double all = Real(MatrixParameterCount(model));
  const double sequence = Real(model.sequence);
  const double head = Real(model.vocabulary) * Real(model.hidden);
  switch (plan.phase) {
    case ModelPhase::kTraining: return tokens * 3 * (2 * all + pair * sequence);
    case ModelPhase::kPrefill:
      // The head computes only the last token of each sequence.
      return tokens * (2 * (all - head) + pair * (sequence + Real(plan.cached))) +
             tokens / sequence * 2 * head;
    case ModelPhase::kDecode:
      return tokens * (2 * all + pair * (Real(plan.cached) + (Real(plan.tokens) + 1) / 2));
  }
  return 0;
}

}  // namespace etude
