#include "src/synth/transformer/transformer_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/synth/transformer/transformer_file.h"

namespace etude {
namespace {

const TransformerModel& Preset(std::string_view name) {
  return FindPreset(TransformerPresets(), name)->model;
}

// Totals of the published weights: the sums of the tensors in the model's files.
std::optional<TransformerModel> ModelIn(std::string_view text) {
  const auto file = ParseTransformerFile(text, "m.toml");
  EXPECT_TRUE(file) << file.error().message;
  return file ? std::optional(file->model) : std::nullopt;
}

TEST(TransformerModel, PresetsHaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(ParameterCount(Preset("llama-2-7b")), 6'738'415'616);
  EXPECT_EQ(ParameterCount(Preset("llama-2-70b")), 68'976'648'192);
  EXPECT_EQ(ParameterCount(Preset("llama-3-8b")), 8'030'261'248);
  EXPECT_EQ(ParameterCount(Preset("llama-3-70b")), 70'553'706'496);
  EXPECT_EQ(ParameterCount(Preset("llama-3-405b")), 405'853'388'800);
  EXPECT_EQ(ParameterCount(Preset("mixtral-8x7b")), 46'702'792'704);
  EXPECT_EQ(ParameterCount(Preset("mixtral-8x22b")), 140'620'634'112);
  EXPECT_EQ(ParameterCount(Preset("qwen3-30b-a3b")), 30'532'122'624);
  EXPECT_EQ(ParameterCount(Preset("qwen3-235b-a22b")), 235'093'634'560);
  EXPECT_EQ(ParameterCount(Preset("dbrx")), 131'596'523'520);
  EXPECT_EQ(ParameterCount(Preset("deepseek-moe-16b")), 16'375'728'128);
  EXPECT_NEAR(static_cast<double>(ParameterCount(Preset("gpt-3-175b"))), 175.0e9, 0.5e9);
  // "uses 13B active parameters": arXiv 2401.04088; the others state 39 of 141, 3.3 of 30.5, 22 of
  // 235, 36 of 132 and 2.8 of 16.4.
  const auto active = [](std::string_view name) {
    return std::lround(static_cast<double>(ActiveParameterCount(Preset(name))) / 1e8);
  };
  EXPECT_EQ(active("mixtral-8x7b"), 129);
  EXPECT_EQ(active("mixtral-8x22b"), 392);
  EXPECT_EQ(active("qwen3-30b-a3b"), 34);
  EXPECT_EQ(active("qwen3-235b-a22b"), 222);
  EXPECT_EQ(active("dbrx"), 365);
  EXPECT_EQ(active("deepseek-moe-16b"), 28);
  EXPECT_EQ(ParameterCount(Preset("deepseek-v2-lite")), 15'706'484'224);
  EXPECT_EQ(ParameterCount(Preset("deepseek-v2")), 235'741'434'880);
  // 671,026,419,200 with the 256 offsets that balance the experts of each of 58 layers, which have
  // no gradients.
  EXPECT_EQ(ParameterCount(Preset("deepseek-v3")), 671'026'419'200 - 58 * 256);
  // Without the embedding, which is a lookup: 2.4B, 21B (arXiv 2405.04434) and 36.6B (the published
  // README_WEIGHTS.md of DeepSeek-V3, 37B in arXiv 2412.19437).
  const auto used = [](std::string_view name) {
    const TransformerModel& model = Preset(name);
    return static_cast<double>(ActiveParameterCount(model) - model.vocabulary * model.hidden) / 1e9;
  };
  EXPECT_NEAR(used("deepseek-v2-lite"), 2.4, 0.06);
  EXPECT_NEAR(used("deepseek-v2"), 21, 0.5);
  EXPECT_NEAR(used("deepseek-v3"), 36.6, 0.05);
  EXPECT_EQ(ActiveParameterCount(Preset("llama-3-8b")), ParameterCount(Preset("llama-3-8b")));
  for (const TransformerPreset& preset : TransformerPresets()) {
    EXPECT_TRUE(CheckTransformer(preset.model)) << preset.name;
  }
}

// P = 12 l h² (1 + 13/(12 h) + (V + s)/(12 l h)) except for the final norm: Narayanan et al. 2021,
// section 5.1, equation 2.
TEST(TransformerModel, DenseModelsFollowMegatronsFormula) {
  const TransformerModel& model = Preset("gpt-3-175b");
  const int64_t h = model.hidden;
  EXPECT_EQ(ParameterCount(model), model.layers * (12 * h * h + 13 * h) +
                                       (model.vocabulary + model.positions) * h + 2 * h);
}

// By hand: 2 layers, the first dense; hidden 8, 2 heads of 4 over 1 kv head, 4 experts of 6 units
// and a shared one of 10, gated.
TEST(TransformerModel, ExpertsByHand) {
  TransformerModel model{
      .layers = 2,
      .hidden = 8,
      .heads = 2,
      .kv_heads = 1,
      .head_size = 4,
      .ffn = 16,
      .vocabulary = 10,
      .sequence = 4,
      .experts =
          ExpertsModel{.experts = 4, .top_k = 2, .ffn = 6, .shared_ffn = 10, .dense_layers = 1}};
  ASSERT_TRUE(CheckTransformer(model));
  const int64_t attention = 8 + 8 * 16 + 8 * 8 + 8;  // two norms, qkv of 4 heads, projection
  const int64_t dense = 8 * 32 + 16 * 8;
  const int64_t routed = 8 * 4 + 4 * (8 * 12 + 6 * 8) + 8 * 20 + 10 * 8;
  const int64_t ends = 10 * 8 + 8 + 10 * 8;
  EXPECT_EQ(ParameterCount(model), 2 * attention + dense + routed + ends);
  EXPECT_EQ(ActiveParameterCount(model), ParameterCount(model) - 2 * (8 * 12 + 6 * 8));
  EXPECT_FALSE(HasExperts(model, 0));
  EXPECT_TRUE(HasExperts(model, 1));
}

// By hand: hidden 8, 2 heads; queries of 6 values, keys and values of 5; 3 + 2 of a query and a
// key, 4 of a value.
TEST(TransformerModel, LatentAttentionByHand) {
  TransformerModel model{.layers = 1,
                         .hidden = 8,
                         .heads = 2,
                         .kv_heads = 2,
                         .head_size = 5,
                         .ffn = 16,
                         .vocabulary = 10,
                         .sequence = 4};
  model.latent = LatentAttention{
      .query_rank = 6, .kv_rank = 5, .nope_size = 3, .rope_size = 2, .value_size = 4};
  ASSERT_TRUE(CheckTransformer(model));
  const int64_t others = 8 + 8 + 3 * 8 * 16 + 10 * 8 + 8 + 10 * 8;
  const int64_t queries = 8 * 6 + 6 + 6 * 2 * 5;
  const int64_t keys = 8 * (5 + 2) + 5 + 5 * 2 * (3 + 4);
  EXPECT_EQ(ParameterCount(model), others + queries + keys + 2 * 4 * 8);
  model.latent->query_rank = 0;
  EXPECT_EQ(ParameterCount(model), others + 8 * 2 * 5 + keys + 2 * 4 * 8);
}

std::string ModelErrorOf(std::string_view text) {
  const auto file = ParseTransformerFile(text, "m.toml");
  return file ? "" : file.error().message;
}

TEST(TransformerFile, PresetsCanBeChanged) {
  const auto model = ModelIn(
      "format = 'etude-model'\npreset = 'llama-3-8b'\n[model]\nlayers = 4\ngradients = "
      "'bfloat16'\n");
  ASSERT_TRUE(model);
  TransformerModel expected = Preset("llama-3-8b");
  expected.layers = 4;
  expected.gradients = DType::kBFloat16;
  EXPECT_EQ(*model, expected);
  const auto mixtral = ModelIn("preset = 'mixtral-8x7b'\n[experts]\ncapacity_factor = 1.25\n");
  ASSERT_TRUE(mixtral);
  EXPECT_EQ(mixtral->experts->experts, 8);
  EXPECT_EQ(mixtral->experts->capacity_factor, 1.25);
}

TEST(TransformerFile, ModelsOfOnesOwn) {
  const auto model = ModelIn(
      "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocabulary = 100\nsequence = 32\n"
      "positions = 32\nnorm = 'layer'\ngated = false\nbiases = true\ntied = true\n");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->kv_heads, 4);
  EXPECT_EQ(model->head_size, 16);
  EXPECT_EQ(ParameterCount(*model), 2 * (12 * 64 * 64 + 13 * 64) + 132 * 64 + 2 * 64);
}

TEST(TransformerFile, LatentAttention) {
  auto model = ModelIn(
      "[model]\nlayers = 2\nhidden = 64\nheads = 3\nffn = 256\nvocabulary = 100\nsequence = 32\n"
      "[latent]\nkv_rank = 16\nnope_size = 8\nrope_size = 4\nvalue_size = 10\n");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->head_size, 12);
  EXPECT_EQ(model->kv_heads, 3);
  EXPECT_EQ(*model->latent,
            (LatentAttention{.kv_rank = 16, .nope_size = 8, .rope_size = 4, .value_size = 10}));
  model = ModelIn("preset = 'deepseek-v2'\n[model]\nheads = 16\n[latent]\nrope_size = 32");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->head_size, 160);
  EXPECT_EQ(model->kv_heads, 16);
  EXPECT_EQ(model->latent->kv_rank, 512);
}

TEST(TransformerFile, Plans) {
  const auto file = ParseTransformerFile(
      "preset = 'llama-3-8b'\n[plan]\ndp = 2\ntp = 4\npp = 3\nsequence_parallel = false\nzero = 1\n"
      "clip = true\nmicro_batches = 6\nschedule = 'gpipe'\nbucket = '1MiB'\nrecompute = 'full'\n"
      "attention = 'unfused'\nsequences = 5\n",
      "m.toml");
  ASSERT_TRUE(file) << file.error().message;
  const TransformerPlan plan = *file->plan.PlanFor(file->model);
  EXPECT_EQ(plan.data, 2);
  EXPECT_EQ(plan.layer.tensor, 4);
  EXPECT_EQ(plan.layer.sequences, 5);
  EXPECT_FALSE(plan.layer.sequence_parallel);
  EXPECT_EQ(plan.layer.attention, AttentionKind::kUnfused);
  EXPECT_EQ(plan.layer.recompute, Recompute::kFull);
  EXPECT_EQ(plan.pipeline.stages, 3);
  EXPECT_EQ(plan.pipeline.micro_batches, 6);
  EXPECT_EQ(plan.pipeline.schedule, PipelineSchedule::kGpipe);
  EXPECT_EQ(plan.zero_stage, 1);
  EXPECT_EQ(plan.bucket.count, 1 << 20);
  EXPECT_TRUE(plan.clips);
  EXPECT_EQ(plan.phase, ModelPhase::kTraining);

  // Options take precedence over the file; settings in neither have their defaults.
  PlanSettings options{.data = 8, .bucket = Bytes{5}};
  options.Complete(file->plan);
  const TransformerPlan both = *options.PlanFor(file->model);
  EXPECT_EQ(both.data, 8);
  EXPECT_EQ(both.bucket.count, 5);
  EXPECT_EQ(both.layer.tensor, 4);
  EXPECT_EQ(both.layer.context, 1);

  const auto decode = ParseTransformerFile(
      "preset = 'llama-3-8b'\n[plan]\nphase = 'decode'\ntokens = 2\ncache_type = 'float8_e5m2'",
      "m.toml");
  ASSERT_TRUE(decode) << decode.error().message;
  EXPECT_EQ(decode->plan.PlanFor(decode->model)->phase, ModelPhase::kDecode);
  EXPECT_EQ(decode->plan.PlanFor(decode->model)->cached, 8192 - 2);
  EXPECT_EQ(decode->plan.PlanFor(decode->model)->cache_type, DType::kFloat8E5M2);
}

// Without 'cached', sequences of decode end with the model's length.
TEST(TransformerFile, TokensThatDoNotFitIntoASequence) {
  const auto file = ParseTransformerFile(
      "preset = 'llama-3-8b'\n[plan]\nphase = 'decode'\ntokens = 8193\n", "m.toml");
  ASSERT_TRUE(file);
  const auto plan = file->plan.PlanFor(file->model);
  ASSERT_FALSE(plan);
  EXPECT_EQ(PlacedError(plan.error(), file->places, "m.toml").message,
            "m.toml:4:10: tokens: found 8193, expected at most the 8192 of a sequence unless "
            "'cached' is given");
  PlanSettings cached = file->plan;
  cached.cached = 8000;
  EXPECT_EQ(cached.PlanFor(file->model)->cached, 8000);
}

// Places are those of the first key in the file, and the key's own name if there is none.
TEST(TransformerFile, PlacesOfWhatDoesNotFitAPlan) {
  const auto message = [](std::string_view plan) {
    const auto file = ParseTransformerFile("preset = 'llama-3-8b'\n" + std::string(plan), "m.toml");
    const Fits fits = CheckTransformerPlan(file->model, file->plan.PlanFor(file->model).value());
    return fits ? "" : PlacedError(fits.error(), file->places, "m.toml").message;
  };
  EXPECT_EQ(message("[plan]\npp = 2\ntp = 3"),
            "m.toml:4:6: heads: found 32, expected a multiple of the 3 tensor-parallel ranks");
  EXPECT_EQ(message("[model]\nlayers = 3\n[plan]\npp = 2\nchunks = 2\nschedule = 'interleaved'\n"
                    "micro_batches = 2"),
            "m.toml:5:6: layers: found 3, expected one or more for each of 2 stages and 2 chunks "
            "on each");
  const TransformerModel& model = FindPreset(TransformerPresets(), "llama-3-8b")->model;
  const Fits fits = CheckTransformerPlan(model, {.layer = {.tensor = 3}});
  EXPECT_EQ(PlacedError(fits.error(), {}, "llama-3-8b").message,
            "llama-3-8b: heads: found 32, expected a multiple of the 3 tensor-parallel ranks");
}

TEST(TransformerFile, ErrorsSayWhereAndWhatWasExpected) {
  const std::string whole =
      "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocabulary = 100\nsequence = 32\n";
  EXPECT_EQ(ModelErrorOf("preset = 'lama-3-8b'"),
            "m.toml:1:10: preset: unknown 'lama-3-8b'; did you mean 'llama-3-8b'?");
  EXPECT_EQ(ModelErrorOf("preset = 'llama-3-8b'\n[model]\nlayer = 2"),
            "m.toml:3:1: unknown key 'layer' of [model]; did you mean 'layers'?");
  EXPECT_EQ(ModelErrorOf(""), "m.toml: missing 'preset' or [model]");
  EXPECT_EQ(ModelErrorOf("[model]\nlayers = 2"), "m.toml:1:1: [model]: missing 'hidden'");
  EXPECT_EQ(ModelErrorOf("preset = 'llama-3-8b'\n[model]\nheads = 7"),
            "m.toml:3:9: found 7 heads, which do not divide 4096 hidden units, and no 'head_size'");
  EXPECT_EQ(ModelErrorOf(whole + "kv_heads = 3"),
            "m.toml:8:12: kv_heads: found 3, expected a divisor of the 4 heads");
  EXPECT_EQ(ModelErrorOf(whole + "norm = 'batch'"),
            "m.toml:8:8: norm: found 'batch', expected rms, layer or layer-no-offset");
  EXPECT_EQ(ModelErrorOf(whole + "[experts]\nexperts = 4\ntop_k = 5\nffn = 8"),
            "m.toml:10:9: top_k: found 5, expected 1 to the 4 experts");
  const std::string experts = whole + "[experts]\nexperts = 4\ntop_k = 2\nffn = 8\n";
  EXPECT_EQ(ModelErrorOf(experts + "shares = [1, 2]"),
            "m.toml:12:10: shares: found 2, expected one for each of 4 experts");
  EXPECT_EQ(
      ModelErrorOf(experts + "shares = [0, 2, 0, 0]"),
      "m.toml:12:10: shares: found 1 above 0, expected 2 or more, the number of experts per token");
  EXPECT_EQ(ModelErrorOf(experts + "shares = [0, 2, 0, -1]"),
            "m.toml:12:20: shares: found -1, expected a number above 0");
  EXPECT_EQ(ModelErrorOf(experts + "shares = 2"),
            "m.toml:12:10: shares: found a whole number, expected a list of numbers");
  EXPECT_EQ(ModelErrorOf(experts + "imbalance = 9"),
            "m.toml:12:13: imbalance: found 9, expected 0 to 8");
  EXPECT_EQ(ModelErrorOf(experts + "imbalance = 1\nshares = [1, 1, 1, 1]"),
            "m.toml:13:10: found shares of experts and imbalance, expected one of them");
  EXPECT_TRUE(ModelErrorOf(experts + "imbalance = 0\nseed = 3\nshares = [1, 1.5, 0, 1]").empty());
  EXPECT_EQ(ModelErrorOf(whole + "[latent]\nkv_rank = 8\nnope_size = 8\nrope_size = 4"),
            "m.toml:8:1: [latent]: missing 'value_size'");
  const std::string latent = "[latent]\nkv_rank = 8\nnope_size = 8\nrope_size = 4\nvalue_size = 8";
  EXPECT_EQ(ModelErrorOf(whole + "head_size = 16\n" + latent),
            "m.toml:8:13: head_size: found 16, expected nope_size and rope_size, 12");
  EXPECT_EQ(ModelErrorOf(whole + "kv_heads = 2\n" + latent),
            "m.toml:8:12: kv_heads: found 2, expected the 4 heads with latent attention");
  EXPECT_EQ(ModelErrorOf(whole + "positions = 32\n" + latent),
            "m.toml:8:13: positions: found 32, expected 0, rotary ones, with latent attention");
  EXPECT_EQ(ModelErrorOf(whole + "biases = true\n" + latent),
            "m.toml:8:10: biases: found true, expected false with latent attention");
  const std::string plan = "preset = 'llama-3-8b'\n[plan]\n";
  EXPECT_EQ(ModelErrorOf(plan + "micro-batches = 2"),
            "m.toml:3:1: unknown key 'micro-batches' of [plan]; did you mean 'micro_batches'?");
  EXPECT_EQ(ModelErrorOf(plan + "zero = 4"), "m.toml:3:8: zero: found 4, expected 0 to 3");
  EXPECT_EQ(ModelErrorOf(plan + "schedule = 'gpip'"),
            "m.toml:3:12: schedule: found 'gpip', expected gpipe, 1f1b, interleaved, zero-bubble; "
            "did you mean 'gpipe'?");
  EXPECT_EQ(ModelErrorOf(plan + "bucket = 'big'"),
            "m.toml:3:10: bucket: found 'big', expected bytes, such as \"25MiB\"");
  EXPECT_EQ(ModelErrorOf(plan + "phase = 'decode'\nzero = 1"),
            "m.toml:4:8: zero requires phase training");
  EXPECT_EQ(ModelErrorOf(plan + "phase = 'prefill'\ntokens = 1"),
            "m.toml:4:10: tokens requires phase decode");
  EXPECT_EQ(ModelErrorOf("preset = 'llama-3-8b'\nplan = 1"),
            "m.toml:2:8: plan: found a whole number, expected a table: [plan]");
  EXPECT_TRUE(ModelErrorOf("[model]\nlayers = 0").starts_with("m.toml:2:10: layers: found 0"));
  EXPECT_TRUE(ModelErrorOf("a = ").starts_with("m.toml:1:"));
  EXPECT_EQ(
      ModelErrorOf("[model]\nlayers = 16777216\nhidden = 16777216\nheads = 16777216\nffn = 1\n"
                   "vocabulary = 1\nsequence = 1\n"),
      "m.toml:1:1: found about 1.9e+22 parameters, expected fewer than 3.6e+16");
}

}  // namespace
}  // namespace etude
