#include "src/synth/transformer/transformer_flops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/synth/transformer/transformer_job.h"

namespace etude {
namespace {

// A layer: norms 2 · 8, queries 8 · 8, keys and values 2 · 8 · 4, projection 8 · 8, up and gate 2 ·
// 8 · 16, down 16 · 8: 592. Embedding and head 10 · 8 each, the final norm 8.
TransformerModel HandModel() {
  TransformerModel model;
  model.layers = 2;
  model.hidden = 8;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_size = 4;
  model.ffn = 16;
  model.vocabulary = 10;
  model.sequence = 4;
  return model;
}

TEST(TransformerFlops, SixAParameterAndAttention) {
  TransformerPlan plan;
  plan.data = 2;
  plan.pipeline.micro_batches = 3;
  EXPECT_EQ(ParameterCount(HandModel()), 2 * 592 + 80 + 80 + 8);
  EXPECT_EQ(MatrixParameterCount(HandModel()), 1272);
  EXPECT_EQ(StepTokens(HandModel(), plan), 24);
  // A token: 6 · 1,272 + 12 · 2 layers · 2 heads · 4 · 4 tokens = 8,400.
  EXPECT_DOUBLE_EQ(ModelFlops(HandModel(), plan), 24 * 8400.0);
  // Ranks and recomputation change nothing.
  plan.layer.recompute = Recompute::kFull;
  plan.pipeline.stages = 2;
  EXPECT_DOUBLE_EQ(ModelFlops(HandModel(), plan), 24 * 8400.0);
  TransformerModel tied = HandModel();
  tied.tied = true;
  EXPECT_EQ(MatrixParameterCount(tied), 1272);
}

// Without full attention's upper half, the programs' matrix products equal the model's operations.
TEST(TransformerFlops, AreThoseOfTheProgramsMatrixProducts) {
  TransformerModel model = HandModel();
  TransformerPlan plan;
  plan.layer.attention = AttentionKind::kUnfused;
  const StepJob job = MakeTransformerJob(model, plan).value();
  double flops = 0;
  for (const StepWork& work : job.program(0)) flops += static_cast<double>(work.matrix_flops);
  // Norms have parameters, but are not matrix products: 5 · 8 parameters, 4 tokens.
  EXPECT_DOUBLE_EQ(flops, ModelFlops(model, plan) - 6.0 * 5 * 8 * 4);
}

TEST(TransformerFlops, Inference) {
  TransformerPlan plan;
  plan.phase = ModelPhase::kPrefill;
  plan.layer.sequences = 3;
  plan.cached = 6;
  // 12 tokens in 1,192 parameters, with 10 each; the head 3 times.
  EXPECT_DOUBLE_EQ(ModelFlops(HandModel(), plan),
                   12 * (2.0 * 1192 + 4 * 2 * 8 * 10) + 3 * 2.0 * 80);
  plan.phase = ModelPhase::kDecode;
  plan.tokens = 2;
  EXPECT_EQ(StepTokens(HandModel(), plan), 6);
  // With 7 and with 8 tokens.
  EXPECT_DOUBLE_EQ(ModelFlops(HandModel(), plan), 3 * (2 * 2.0 * 1272 + 4 * 2 * 8 * (7 + 8)));
}

// On one rank, 4 tokens, 2 bytes per activation, 16 + 2 bytes per parameter in all. A layer keeps
// the inputs of both norms, of queries, keys and values, of the projection and of up (64 each),
// queries, keys and values (128), the outputs of up and gate (256) and the input of down (128); the
// head its norm's input and its own (64 each) and the softmax in single precision (160); the
// embedding the token numbers (8 each).
TEST(TransformerFlops, MemoryByHand) {
  const StepJob job = MakeTransformerJob(HandModel(), {}).value();
  const int64_t parameters = 1352;
  EXPECT_EQ(job.states()[0].weights, Bytes{2 * parameters});
  EXPECT_EQ(job.states()[0].gradients, Bytes{4 * parameters});
  EXPECT_EQ(job.states()[0].optimizer, Bytes{12 * parameters});
  const int64_t kept = std::ranges::max(job.MemoryOf(0)).count - job.states()[0].total().count;
  EXPECT_EQ(kept, 2 * (5 * 64 + 128 + 256 + 128) + 2 * 64 + 160 + 4 * 8);
}

}  // namespace
}  // namespace etude
