#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/synth/layer_testing.h"
#include "src/synth/transformer/inference_program.h"
#include "src/synth/transformer/transformer_job.h"

namespace etude {
namespace {

using testing_layer::SmallLlama;
using testing_layer::WorkOf;

TransformerModel SmallRouted() {
  TransformerModel model = SmallLlama();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 512};
  return model;
}

std::vector<LayerWork> AllWorks(const TransformerModel& model, const LayerPlan& plan) {
  EXPECT_TRUE(CheckLayerPlan(model, plan));
  std::vector<LayerWork> works = TransformerEmbedding(model, plan).forward;
  const auto add = [&](const LayerPasses& passes) {
    EXPECT_TRUE(passes.backward.empty());
    works.insert(works.end(), passes.forward.begin(), passes.forward.end());
  };
  for (int64_t layer = 0; layer < model.layers; ++layer) add(TransformerLayer(model, plan, layer));
  add(TransformerHead(model, plan));
  for (const LayerWork& work : works) EXPECT_EQ(work.kept.count, 0) << work.name;
  return works;
}

int64_t MatricesOf(const std::vector<LayerWork>& works) {
  int64_t sum = 0;
  for (const LayerWork& work : works) sum += work.matrix_flops;
  return sum;
}

// 2 N + 2 n_layer n_ctx d_attn operations per token, of which half of n_ctx tokens are attended on
// average: Kaplan et al. 2020, arXiv 2001.08361, table 1. Counted here for the attended tokens.
TEST(TransformerInference, OperationsOfAToken) {
  const TransformerModel model = SmallLlama();
  // Without the norms and the embedding, which is looked up.
  const int64_t matrices =
      ParameterCount(model) - (2 * model.layers + 1) * model.hidden - 1000 * 256;
  for (const int64_t cached : {0, 1, 999}) {
    const LayerPlan plan{.sequences = 3, .inference = InferencePass{.cached = cached}};
    EXPECT_EQ(MatricesOf(AllWorks(model, plan)),
              3 * (2 * matrices + 4 * model.layers * 8 * 32 * (cached + 1)));
  }
  // A prompt: the head for the last token only.
  const int64_t s = 64;
  const LayerPlan plan{.inference = InferencePass{.tokens = s}};
  EXPECT_EQ(MatricesOf(AllWorks(model, plan)), 2 * s * (matrices - 1000 * 256) + 2 * 1000 * 256 +
                                                   4 * model.layers * 8 * 32 * (s * (s + 1) / 2));
}

// A prompt of s tokens takes the same work as its pieces with the earlier ones in the cache.
TEST(TransformerInference, PromptsInPieces) {
  const TransformerModel model = SmallLlama();
  const auto flops = [&](int64_t tokens, int64_t cached) {
    return MatricesOf(
        TransformerLayer(model, {.inference = InferencePass{.tokens = tokens, .cached = cached}}, 1)
            .forward);
  };
  EXPECT_EQ(flops(64, 0), flops(40, 0) + flops(23, 40) + flops(1, 63));
}

// 2 · 2 · n_layers · n_heads · d_head bytes per token: 2,097,152 for 64 layers with 64 heads of 128
// (Chen 2022, Transformer Inference Arithmetic); 3 TB for 512 sequences of 2,048 tokens of a model
// of 118 layers with 48 heads of 128 (Pope et al. 2022, arXiv 2211.05102, section 2). Llama 3 8B:
// 32 layers with 8 heads of 128 for keys.
TEST(TransformerInference, CacheOfAToken) {
  TransformerModel model = SmallLlama();
  model.layers = 64;
  model.kv_heads = 64;
  model.head_size = 128;
  EXPECT_EQ(CacheBytesPerToken(model, DType::kFloat16).count, 2'097'152);
  model.layers = 118;
  model.kv_heads = 48;
  EXPECT_NEAR(512.0 * 2048 * static_cast<double>(CacheBytesPerToken(model, DType::kFloat16).count),
              3e12, 0.1e12);
  model = FindPreset(TransformerPresets(), "llama-3-8b")->model;
  EXPECT_EQ(CacheBytesPerToken(model, DType::kBFloat16).count, 131'072);
  EXPECT_EQ(CacheBytesPerToken(model, DType::kFloat8E4M3Fn).count, 65'536);
}

// One token of each of 3 sequences with 100 cached ones, on 2 tensor-parallel ranks, by hand.
TEST(TransformerInference, DecodeByHand) {
  const TransformerModel model = SmallLlama();
  const LayerPlan plan{.tensor = 2,
                       .sequence_parallel = false,
                       .sequences = 3,
                       .inference = InferencePass{.cached = 100, .cache = DType::kFloat8E4M3Fn}};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const std::vector<LayerWork> works = TransformerLayer(model, plan, 0).forward;
  std::vector<std::string> names;
  for (const LayerWork& work : works) names.push_back(work.name);
  EXPECT_EQ(names, (std::vector<std::string>{"attention norm", "qkv", "rotary", "cache append",
                                             "attention", "projection", "projection all_reduce",
                                             "attention residual", "ffn norm", "up", "activation",
                                             "down", "down all_reduce", "ffn residual"}));
  // 4 heads of queries and 2 of keys and of values on a rank.
  const LayerWork& qkv = WorkOf(works, "qkv");
  EXPECT_EQ(qkv.flops, 2 * 3 * 256 * (4 + 2 + 2) * 32);
  EXPECT_EQ(qkv.read.count, (3 * 256 + 256 * 256) * 2);
  const LayerWork& append = WorkOf(works, "cache append");
  EXPECT_EQ(append.flops, 0);
  EXPECT_EQ(append.read.count, 2 * 3 * 2 * 32 * 2);
  EXPECT_EQ(append.written.count, 2 * 3 * 2 * 32 * 1);
  const LayerWork& attention = WorkOf(works, "attention");
  const int64_t pairs = 3 * 4 * 101;
  EXPECT_EQ(attention.flops, (4 * 32 + 6) * pairs);
  EXPECT_EQ(attention.read.count, 3 * 4 * 32 * 2 + 2 * 3 * 2 * 32 * (100 * 1 + 1 * 2));
  EXPECT_EQ(attention.written.count, 3 * 4 * 32 * 2);
  EXPECT_EQ(WorkOf(works, "down all_reduce").bytes.count, 3 * 256 * 2);

  const std::vector<LayerWork> head = TransformerHead(model, plan).forward;
  EXPECT_EQ(head.front().name, "final norm");
  EXPECT_EQ(WorkOf(head, "head").flops, 2 * 3 * 256 * 500);
  EXPECT_EQ(WorkOf(head, "logits all_gather").bytes.count, 3 * 500 * 2);
  EXPECT_EQ(WorkOf(head, "choice").flops, 3 * 1000);
  EXPECT_EQ(WorkOf(head, "choice").written.count, 3 * 8);
}

// Each rank contributes its last tokens, then all compute the logits.
TEST(TransformerInference, LastTokensOfSharedPrompts) {
  const TransformerModel model = SmallLlama();
  const LayerPlan plan{
      .tensor = 2, .context = 4, .sequences = 3, .inference = InferencePass{.tokens = 64}};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const std::vector<LayerWork> head = TransformerHead(model, plan).forward;
  EXPECT_EQ(WorkOf(head, "last tokens").read.count, 3 * 256 * 2);
  EXPECT_EQ(WorkOf(head, "last tokens all_gather").bytes.count, 3 * 256 * 2);
  EXPECT_EQ(WorkOf(head, "last tokens context all_gather").axis, LayerAxis::kContext);
  EXPECT_EQ(WorkOf(head, "final norm").flops, 4 * 3 * 256);
  EXPECT_EQ(WorkOf(head, "head").flops, 2 * 3 * 256 * 500);
  const std::vector<LayerWork> layer = TransformerLayer(model, plan, 0).forward;
  // A quarter of the prompt, cached by its own rank, with keys of half the heads.
  EXPECT_EQ(WorkOf(layer, "cache append").written.count, 2 * 3 * 16 * 2 * 32 * 2);
  EXPECT_EQ(WorkOf(layer, "attention").matrix_flops, 4 * 32 * 3 * 4 * (64 * 65 / 2) / 4);
}

// A token goes through two experts; only their weights are read.
TEST(TransformerInference, FewTokensUseFewExperts) {
  const TransformerModel model = SmallRouted();
  const auto read = [&](const LayerPlan& plan, int64_t rows, int64_t used) {
    ASSERT_TRUE(CheckLayerPlan(model, plan));
    const LayerWork up = WorkOf(TransformerLayer(model, plan, 0).forward, "experts up");
    EXPECT_EQ(up.flops, 2 * rows * 256 * 1024 / plan.tensor);
    EXPECT_EQ(up.read.count, (rows * 256 + used * 256 * 1024 / plan.tensor) * 2);
  };
  read({.sequences = 1, .inference = InferencePass{}}, 2, 2);
  read({.sequences = 3, .inference = InferencePass{}}, 6, 6);
  read({.sequences = 100, .inference = InferencePass{}}, 200, 8);
  // Two experts on a rank, which receives as many rows as it sends.
  const LayerPlan spread{.expert = 4, .sequences = 3, .inference = InferencePass{}};
  read(spread, 6, 2);
  const std::vector<LayerWork> works = TransformerLayer(model, spread, 0).forward;
  EXPECT_EQ(WorkOf(works, "dispatch all_to_all").bytes.count, 6 * 256 * 2);
  EXPECT_EQ(WorkOf(works, "combine all_to_all").bytes.count, 6 * 256 * 2);
  // Tensor-parallel ranks that do not share tokens send all of them, and sum the results.
  const LayerPlan whole{.tensor = 2,
                        .sequence_parallel = false,
                        .expert = 4,
                        .sequences = 3,
                        .inference = InferencePass{}};
  read(whole, 6, 2);
  const std::vector<LayerWork> summed = TransformerLayer(model, whole, 0).forward;
  EXPECT_EQ(WorkOf(summed, "dispatch all_to_all").bytes.count, 6 * 256 * 2);
  EXPECT_EQ(WorkOf(summed, "combine all_reduce").bytes.count, 3 * 256 * 2);
  // Those that share tokens: 8 of each rank, whose 16 rows the other one gets, too.
  const LayerPlan shared{.tensor = 2, .expert = 4, .inference = InferencePass{.tokens = 16}};
  read(shared, 32, 2);
  EXPECT_EQ(WorkOf(TransformerLayer(model, shared, 0).forward, "dispatch all_to_all").bytes.count,
            16 * 256 * 2);
}

// Matrices and their communication add up over the ranks, except for the router, which each
// tensor-parallel rank has completely.
TEST(TransformerInference, RanksShareTheWork) {
  const TransformerModel model = SmallLlama();
  for (const int64_t tokens : {1, 16}) {
    const InferencePass pass{.tokens = tokens, .cached = 50};
    const int64_t whole = MatricesOf(TransformerLayer(model, {.inference = pass}, 0).forward);
    for (const int64_t t : {2, 4}) {
      const LayerPlan plan{.tensor = t, .sequence_parallel = tokens > 1, .inference = pass};
      ASSERT_TRUE(CheckLayerPlan(model, plan));
      EXPECT_EQ(t * MatricesOf(TransformerLayer(model, plan, 0).forward), whole);
    }
  }
}

// Three tokens of two micro-batches on three stages: activations to the next stage, choices from
// the last one to the first, which meanwhile continues with the other micro-batch.
TEST(TransformerInference, DecodeOnStages) {
  TransformerPlan plan{.layer = {.tensor = 2, .sequences = 5},
                       .pipeline = {.stages = 3, .micro_batches = 2}};
  plan.phase = ModelPhase::kDecode;
  plan.cached = 10;
  plan.tokens = 3;
  const StepJob job = MakeTransformerJob(SmallLlama(), plan).value();
  EXPECT_EQ(job.ranks(), 6);
  std::vector<std::string> first;
  for (const StepWork& work : job.program(0)) {
    if (work.partner == 0) continue;
    first.push_back(work.name);
    const bool choice = !work.sends;
    EXPECT_EQ(work.bytes.count, choice ? 5 * 8 : 5 * 256 * 2) << work.name;
  }
  EXPECT_EQ(first,
            (std::vector<std::string>{"send activations #0 token 0", "send activations #1 token 0",
                                      "receive choice #0 token 1", "send activations #0 token 1",
                                      "receive choice #1 token 1", "send activations #1 token 1",
                                      "receive choice #0 token 2", "send activations #0 token 2",
                                      "receive choice #1 token 2", "send activations #1 token 2"}));
  // Caches grow: 10, 11 and 12 earlier tokens.
  std::vector<int64_t> flops;
  for (const StepWork& work : job.program(0)) {
    if (work.name.starts_with("layer 0 attention #0")) flops.push_back(work.flops);
  }
  const int64_t a_token = 5 * 4 * (4 * 32 + 6);
  EXPECT_EQ(flops, (std::vector<int64_t>{11 * a_token, 12 * a_token, 13 * a_token}));
}

// Without updates and backward, replicas do not communicate.
TEST(TransformerInference, ReplicasAreIndependent) {
  TransformerPlan plan{.data = 4};
  plan.phase = ModelPhase::kPrefill;
  const StepJob job = MakeTransformerJob(SmallLlama(), plan).value();
  EXPECT_TRUE(job.Groups().empty());
  for (const StepWork& work : job.program(0)) {
    EXPECT_EQ(work.name.find("gradient"), std::string::npos) << work.name;
    EXPECT_NE(work.name, "optimizer");
  }
}

// Llama 3 8B with 8,192 tokens, by hand: 1 GiB of cache, or half with 8 bits; of 3 stages the first
// has 11 of 32 layers.
TEST(TransformerInference, Memory) {
  const TransformerModel model = FindPreset(TransformerPresets(), "llama-3-8b")->model;
  TransformerPlan plan;
  plan.phase = ModelPhase::kPrefill;
  EXPECT_EQ(InferenceMemoryOf(model, plan, 0).weights.count, 2 * 8'030'261'248);
  EXPECT_EQ(InferenceMemoryOf(model, plan, 0).cache.count, int64_t{1} << 30);
  plan.phase = ModelPhase::kDecode;
  plan.cached = 8000;
  plan.tokens = 192;
  EXPECT_EQ(InferenceMemoryOf(model, plan, 0).cache.count, int64_t{1} << 30);
  plan.cache_type = DType::kFloat8E5M2;
  plan.layer.tensor = 4;
  plan.layer.sequences = 2;
  plan.pipeline = {.stages = 3, .micro_batches = 3};
  EXPECT_EQ(InferenceMemoryOf(model, plan, 0).cache.count, 8192 * 2048 / 4 * 6 * 11);
  EXPECT_EQ(InferenceMemoryOf(model, plan, 2).cache.count, 8192 * 2048 / 4 * 6 * 10);
  // A tied head has its own weights if the embedding is on another stage.
  TransformerModel tied = SmallLlama();
  tied.tied = true;
  TransformerPlan stages{.pipeline = {.stages = 2}};
  stages.phase = ModelPhase::kDecode;
  EXPECT_EQ(InferenceMemoryOf(tied, stages, 0).weights.count + 256 * 2,
            InferenceMemoryOf(tied, stages, 1).weights.count);
}

TEST(TransformerInference, PlansThatDoNotFit) {
  const auto error = [](const TransformerModel& model, const TransformerPlan& plan) {
    const auto job = MakeTransformerJob(model, plan);
    return job ? "" : job.error().message;
  };
  TransformerPlan plan;
  plan.phase = ModelPhase::kDecode;
  plan.layer.context = 2;
  EXPECT_EQ(
      error(SmallLlama(), plan),
      "context-parallel ranks: found 2, expected 1 in decode, which processes one token at a time");
  plan.phase = ModelPhase::kPrefill;
  EXPECT_EQ(error(SmallLlama(), plan), "");
  plan.cached = 1;
  EXPECT_EQ(error(SmallLlama(), plan),
            "context-parallel ranks: found 2 and cached tokens, expected no cached tokens");
  plan.layer.context = 1;
  EXPECT_EQ(error(SmallLlama(), plan), "");
  TransformerModel learned = SmallLlama();
  learned.positions = 64;
  EXPECT_EQ(error(learned, plan), "found sequences of 65 tokens, expected up to the 64 positions");
  plan.zero_stage = 1;
  EXPECT_EQ(error(SmallLlama(), plan),
            "found ZeRO, recomputation or chunks, expected none of them in inference, which has no "
            "backward pass");
  plan.zero_stage = 0;
  plan.cached = int64_t{1} << 24;
  plan.layer.sequences = plan.pipeline.micro_batches = int64_t{1} << 18;
  EXPECT_FALSE(error(SmallLlama(), plan).empty());
  plan = {};
  plan.phase = ModelPhase::kDecode;
  plan.tokens = 1 << 24;
  EXPECT_FALSE(error(SmallLlama(), plan).empty());
  plan.tokens = 0;
  EXPECT_EQ(error(SmallLlama(), plan), "tokens: found 0, expected 1 to 16777216");
}

}  // namespace
}  // namespace etude
