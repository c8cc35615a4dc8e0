#include "src/synth/transformer_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "src/synth/transformer_file.h"

namespace etude {
namespace {

const TransformerModel& Preset(std::string_view name) { return FindTransformerPreset(name)->model; }

// Totals of the published weights: the sums of the tensors in the model's files.
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
  // "uses 13B active parameters": arXiv 2401.04088; 39 of 141, 3.3 of 30.5, 22 of 235, 36 of 132
  // and 2.8 of 16.4 say those of the others.
  const auto active = [](std::string_view name) {
    return std::lround(static_cast<double>(ActiveParameterCount(Preset(name))) / 1e8);
  };
  EXPECT_EQ(active("mixtral-8x7b"), 129);
  EXPECT_EQ(active("mixtral-8x22b"), 392);
  EXPECT_EQ(active("qwen3-30b-a3b"), 34);
  EXPECT_EQ(active("qwen3-235b-a22b"), 222);
  EXPECT_EQ(active("dbrx"), 365);
  EXPECT_EQ(active("deepseek-moe-16b"), 28);
  EXPECT_EQ(ActiveParameterCount(Preset("llama-3-8b")), ParameterCount(Preset("llama-3-8b")));
  for (const TransformerPreset& preset : TransformerPresets()) {
    EXPECT_TRUE(CheckTransformer(preset.model)) << preset.name;
  }
}

// P = 12 l h² (1 + 13/(12 h) + (V + s)/(12 l h)) but for the final norm: Narayanan et al. 2021,
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

std::string ErrorOf(std::string_view text) {
  const auto model = ParseTransformer(text, "m.toml");
  return model ? "" : model.error().message;
}

TEST(TransformerFile, PresetsCanBeChanged) {
  const auto model = ParseTransformer(
      "format = 'etude-model'\npreset = 'llama-3-8b'\n[model]\nlayers = 4\ngradients = "
      "'bfloat16'\n",
      "m.toml");
  ASSERT_TRUE(model) << model.error().message;
  TransformerModel expected = Preset("llama-3-8b");
  expected.layers = 4;
  expected.gradients = DType::kBFloat16;
  EXPECT_EQ(*model, expected);
  const auto mixtral =
      ParseTransformer("preset = 'mixtral-8x7b'\n[experts]\ncapacity_factor = 1.25\n", "m.toml");
  ASSERT_TRUE(mixtral) << mixtral.error().message;
  EXPECT_EQ(mixtral->experts->experts, 8);
  EXPECT_EQ(mixtral->experts->capacity_factor, 1.25);
}

TEST(TransformerFile, ModelsOfOnesOwn) {
  const auto model = ParseTransformer(
      "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocabulary = 100\nsequence = 32\n"
      "positions = 32\nnorm = 'layer'\ngated = false\nbiases = true\ntied = true\n",
      "m.toml");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->kv_heads, 4);
  EXPECT_EQ(model->head_size, 16);
  EXPECT_EQ(ParameterCount(*model), 2 * (12 * 64 * 64 + 13 * 64) + 132 * 64 + 2 * 64);
}

TEST(TransformerFile, ErrorsSayWhereAndWhatWasExpected) {
  const std::string whole =
      "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocabulary = 100\nsequence = 32\n";
  EXPECT_EQ(ErrorOf("preset = 'lama-3-8b'"),
            "m.toml:1:10: preset: there is no 'lama-3-8b'; did you mean 'llama-3-8b'?");
  EXPECT_EQ(ErrorOf("preset = 'llama-3-8b'\n[model]\nlayer = 2"),
            "m.toml:3:1: unknown key 'layer' of [model]; did you mean 'layers'?");
  EXPECT_EQ(ErrorOf(""), "m.toml: found neither 'preset' nor [model], expected one of them");
  EXPECT_EQ(ErrorOf("[model]\nlayers = 2"), "m.toml:1:1: [model] has no 'hidden', which it needs");
  EXPECT_EQ(ErrorOf("preset = 'llama-3-8b'\n[model]\nheads = 7"),
            "m.toml:2:1: found 7 heads, which 4096 hidden units cannot be split into, and no "
            "'head_size'");
  EXPECT_EQ(ErrorOf(whole + "kv_heads = 3"),
            "m.toml:1:1: kv_heads: found 3, expected a divisor of the 4 heads");
  EXPECT_EQ(ErrorOf(whole + "norm = 'batch'"),
            "m.toml:8:8: norm: found 'batch', expected rms, layer or layer-no-offset");
  EXPECT_EQ(ErrorOf(whole + "[experts]\nexperts = 4\ntop_k = 5\nffn = 8"),
            "m.toml:1:1: top_k: found 5, expected 1 to the 4 experts");
  EXPECT_TRUE(ErrorOf("[model]\nlayers = 0").starts_with("m.toml:2:10: layers: found 0"));
  EXPECT_TRUE(ErrorOf("a = ").starts_with("m.toml:1:"));
  EXPECT_EQ(ErrorOf("[model]\nlayers = 16777216\nhidden = 16777216\nheads = 16777216\nffn = 1\n"
                    "vocabulary = 1\nsequence = 1\n"),
            "m.toml:1:1: found about 1.9e+22 parameters, expected fewer than 3.6e+16");
}

}  // namespace
}  // namespace etude
