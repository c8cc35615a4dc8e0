#include "src/synth/transformer/transformer_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

TransformerModel Llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn,
                       int64_t vocabulary, int64_t sequence) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_size = hidden / heads,
          .ffn = ffn,
          .vocabulary = vocabulary,
          .sequence = sequence};
}

TransformerModel Gpt3() {
  TransformerModel model = Llama(96, 12288, 96, 96, 49152, 50257, 2048);
  model.gated = false;
  model.biases = true;
  model.norm = NormKind::kLayerNorm;
  model.tied = true;
  model.positions = 2048;
  return model;
}

// Replaces all feed-forward parts by experts.
TransformerModel Routed(TransformerModel model, int64_t experts, int64_t top_k) {
  model.experts = ExpertsModel{.experts = experts, .top_k = top_k, .ffn = model.ffn};
  return model;
}

TransformerModel Qwen3(int64_t layers, int64_t hidden, int64_t heads, int64_t ffn) {
  TransformerModel model = Routed(Llama(layers, hidden, heads, 4, ffn, 151936, 32768), 128, 8);
  model.head_size = 128;
  model.qk_norm = true;
  return model;
}

TransformerModel Dbrx() {
  TransformerModel model = Routed(Llama(40, 6144, 48, 8, 10752, 100352, 32768), 16, 4);
  model.norm = NormKind::kLayerNormNoOffset;
  return model;
}

TransformerModel DeepSeekMoe() {
  TransformerModel model = Llama(28, 2048, 16, 16, 10944, 102400, 4096);
  model.experts = ExpertsModel{
      .experts = 64, .top_k = 6, .ffn = 1408, .shared_ffn = 2 * 1408, .dense_layers = 1};
  return model;
}

// `dense_ffn` and `ffn` are the units of a feed-forward part and of an expert; two experts are
// shared.
TransformerModel DeepSeekV2(int64_t layers, int64_t hidden, int64_t heads, int64_t query_rank,
                            int64_t dense_ffn, int64_t ffn, int64_t experts) {
  TransformerModel model = Llama(layers, hidden, heads, heads, dense_ffn, 102400, 4096);
  model.head_size = 128 + 64;
  model.latent = LatentAttention{.query_rank = query_rank,
                                 .kv_rank = 512,
                                 .nope_size = 128,
                                 .rope_size = 64,
                                 .value_size = 128};
  model.experts = ExpertsModel{
      .experts = experts, .top_k = 6, .ffn = ffn, .shared_ffn = 2 * ffn, .dense_layers = 1};
  return model;
}

TransformerModel DeepSeekV3() {
  TransformerModel model = DeepSeekV2(61, 7168, 128, 1536, 18432, 2048, 256);
  model.vocabulary = 129280;
  model.experts->top_k = 8;
  model.experts->shared_ffn = 2048;
  model.experts->dense_layers = 3;
  return model;
}

constexpr std::string_view kDeepSeekV2Source =
    "DeepSeek-AI 2024, arXiv 2405.04434, section 3.1.2 and appendix B; the model's config.json";
constexpr std::string_view kLlama2Source =
    "Touvron et al. 2023, arXiv 2307.09288, section 2.2 and table 1; the model's config.json";
constexpr std::string_view kLlama3Source =
    "Grattafiori et al. 2024, arXiv 2407.21783, table 3 and section 3.2";

constexpr std::string_view kQwen3Source =
    "Yang et al. 2025, arXiv 2505.09388, table 2; the model's config.json";

void AddNorm(const TransformerModel& model, std::string_view name, int64_t width,
             std::vector<TransformerWeight>& weights) {
  const auto count = static_cast<size_t>(NormElements(model, width) / width);
  weights.insert(weights.end(), count, {.name = name, .rows = 1, .columns = width});
}

// Adds the weights that compute queries, keys and values from the hidden units.
void AddQkv(const TransformerModel& model, std::vector<TransformerWeight>& weights) {
  const int64_t qkv = (model.heads + 2 * model.kv_heads) * model.head_size;
  weights.push_back(
      {.name = "qkv", .rows = qkv, .columns = model.hidden, .split = WeightSplit::kTensor});
  if (model.biases) {
    weights.push_back(
        {.name = "qkv bias", .rows = qkv, .columns = 1, .split = WeightSplit::kTensor});
  }
  if (model.qk_norm) {
    for (const std::string_view name : {"query norm", "key norm"}) {
      weights.push_back({.name = name, .rows = 1, .columns = model.head_size, .by_heads = true});
    }
  }
}

void AddLatentQkv(const TransformerModel& model, std::vector<TransformerWeight>& weights) {
  const LatentAttention& latent = *model.latent;
  const int64_t queries = model.heads * model.head_size;
  if (latent.query_rank == 0) {
    weights.push_back(
        {.name = "query", .rows = queries, .columns = model.hidden, .split = WeightSplit::kTensor});
  } else {
    weights.push_back({.name = "query down", .rows = latent.query_rank, .columns = model.hidden});
    AddNorm(model, "query norm", latent.query_rank, weights);
    weights.push_back({.name = "query up",
                       .rows = queries,
                       .columns = latent.query_rank,
                       .split = WeightSplit::kTensor});
  }
  weights.push_back(
      {.name = "kv down", .rows = latent.kv_rank + latent.rope_size, .columns = model.hidden});
  AddNorm(model, "kv norm", latent.kv_rank, weights);
  weights.push_back({.name = "kv up",
                     .rows = model.heads * (latent.nope_size + latent.value_size),
                     .columns = latent.kv_rank,
                     .split = WeightSplit::kTensor});
}

void AddFeedForward(const TransformerModel& model, std::string_view up, std::string_view down,
                    int64_t ffn, std::vector<TransformerWeight>& weights) {
  const int64_t up_rows = model.gated ? 2 * ffn : ffn;
  weights.push_back(
      {.name = up, .rows = up_rows, .columns = model.hidden, .split = WeightSplit::kTensor});
  if (model.biases) {
    weights.push_back(
        {.name = "up bias", .rows = up_rows, .columns = 1, .split = WeightSplit::kTensor});
  }
  weights.push_back(
      {.name = down, .rows = ffn, .columns = model.hidden, .split = WeightSplit::kTensor});
  if (model.biases) weights.push_back({.name = "down bias", .rows = 1, .columns = model.hidden});
}

int64_t Sum(const std::vector<TransformerWeight>& weights) {
  int64_t sum = 0;
  for (const TransformerWeight& weight : weights) sum += weight.elements();
  return sum;
}

// Checks each dimension alone, so that products can be checked afterwards.
Fits CheckDimensions(const TransformerModel& model) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const auto dimensions = std::to_array<std::pair<std::string_view, int64_t>>({
      {"layers", model.layers},
      {"hidden", model.hidden},
      {"heads", model.heads},
      {"kv_heads", model.kv_heads},
      {"head_size", model.head_size},
      {"ffn", model.ffn},
      {"vocabulary", model.vocabulary},
      {"sequence", model.sequence},
  });
  for (const auto& [name, value] : dimensions) {
    if (value < 1 || value > kMost) {
      return MakeMisfit({fmt::format("model.{}", name)},
                        fmt::format("{}: found {}, expected 1 to {}", name, value, kMost));
    }
  }
  if (model.positions < 0 || model.positions > kMost) {
    return MakeMisfit({"model.positions"},
                      fmt::format("positions: found {}, expected 0 to {}", model.positions, kMost));
  }
  return {};
}

Fits CheckRouting(const ExpertsModel& experts) {
  constexpr double kMostImbalance = 8;
  if (!(experts.imbalance >= 0 && experts.imbalance <= kMostImbalance)) {
    return MakeMisfit({"experts.imbalance"}, fmt::format("imbalance: found {}, expected 0 to {}",
                                                         experts.imbalance, kMostImbalance));
  }
  if (experts.shares.empty()) return {};
  if (experts.imbalance != 0) {
    return MakeMisfit({"experts.shares"},
                      "found shares of experts and imbalance, expected one of them");
  }
  if (static_cast<int64_t>(experts.shares.size()) != experts.experts) {
    return MakeMisfit({"experts.shares"},
                      fmt::format("shares: found {}, expected one for each of {} experts",
                                  experts.shares.size(), experts.experts));
  }
  constexpr double kMostShare = 1e9;
  int64_t chosen = 0;
  for (const double share : experts.shares) {
    if (!(share >= 0 && share <= kMostShare)) {
      return MakeMisfit({"experts.shares"},
                        fmt::format("shares: found {}, expected 0 to {:.0e}", share, kMostShare));
    }
    chosen += share > 0 ? 1 : 0;
  }
  if (chosen < experts.top_k) {
    return MakeMisfit(
        {"experts.shares", "experts.top_k"},
        fmt::format(
            "shares: found {} above 0, expected {} or more, the number of experts per token",
            chosen, experts.top_k));
  }
  return {};
}

Fits CheckExperts(const ExpertsModel& experts, int64_t layers) {
  constexpr int64_t kMostExperts = 1 << 16;
  constexpr int64_t kMostFfn = int64_t{1} << 24;
  if (experts.experts < 1 || experts.experts > kMostExperts) {
    return MakeMisfit({"experts.experts"}, fmt::format("experts: found {}, expected 1 to {}",
                                                       experts.experts, kMostExperts));
  }
  if (experts.top_k < 1 || experts.top_k > experts.experts) {
    return MakeMisfit({"experts.top_k", "experts.experts"},
                      fmt::format("top_k: found {}, expected 1 to the {} experts", experts.top_k,
                                  experts.experts));
  }
  if (experts.ffn < 1 || experts.ffn > kMostFfn) {
    return MakeMisfit({"experts.ffn"}, fmt::format("ffn of experts: found {}, expected 1 to {}",
                                                   experts.ffn, kMostFfn));
  }
  if (experts.shared_ffn < 0 || experts.shared_ffn > kMostFfn) {
    return MakeMisfit({"experts.shared_ffn"}, fmt::format("shared_ffn: found {}, expected 0 to {}",
                                                          experts.shared_ffn, kMostFfn));
  }
  if (experts.dense_layers < 0 || experts.dense_layers >= layers) {
    return MakeMisfit({"experts.dense_layers", "model.layers"},
                      fmt::format("dense_layers: found {}, expected fewer than the {} layers",
                                  experts.dense_layers, layers));
  }
  const double most = static_cast<double>(experts.experts);
  const double capacity = experts.capacity_factor.value_or(1);
  if (!(capacity > 0 && capacity <= most)) {
    return MakeMisfit(
        {"experts.capacity_factor", "experts.experts"},
        fmt::format("capacity_factor: found {}, expected above 0, up to the number of "
                    "experts",
                    capacity));
  }
  return CheckRouting(experts);
}

Fits CheckLatent(const TransformerModel& model) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const LatentAttention& latent = *model.latent;
  const auto dimensions = std::to_array<std::tuple<std::string_view, int64_t, int64_t>>({
      {"query_rank", latent.query_rank, 0},
      {"kv_rank", latent.kv_rank, 1},
      {"nope_size", latent.nope_size, 1},
      {"rope_size", latent.rope_size, 1},
      {"value_size", latent.value_size, 1},
  });
  for (const auto& [name, value, least] : dimensions) {
    if (value < least || value > kMost) {
      return MakeMisfit({fmt::format("latent.{}", name)},
                        fmt::format("{}: found {}, expected {} to {}", name, value, least, kMost));
    }
  }
  if (model.head_size != latent.nope_size + latent.rope_size) {
    return MakeMisfit({"model.head_size", "latent"},
                      fmt::format("head_size: found {}, expected nope_size and rope_size, {}",
                                  model.head_size, latent.nope_size + latent.rope_size));
  }
  if (model.kv_heads != model.heads) {
    return MakeMisfit({"model.kv_heads", "model.heads", "latent"},
                      fmt::format("kv_heads: found {}, expected the {} heads with latent attention",
                                  model.kv_heads, model.heads));
  }
  if (model.positions != 0) {
    return MakeMisfit({"model.positions", "latent"},
                      fmt::format("positions: found {}, expected 0, rotary ones, with latent "
                                  "attention",
                                  model.positions));
  }
  if (model.biases)
    return MakeMisfit({"model.biases", "latent"},
                      "biases: found true, expected false with latent attention");
  if (model.qk_norm)
    return MakeMisfit({"model.qk_norm", "latent"},
                      "qk_norm: found true, expected false with latent attention");
  return {};
}

// Types must be valid for elements of networks.
Fits CheckTypes(const TransformerModel& model) {
  const auto types = std::to_array<std::pair<std::string_view, DType>>(
      {{"weights", model.weights}, {"gradients", model.gradients}, {"optimizer", model.optimizer}});
  for (const auto& [name, type] : types) {
    if (!ElementBytes(type)) {
      return MakeMisfit({fmt::format("model.{}", name)},
                        fmt::format("{}: found '{}', expected an element type of known size", name,
                                    TypeText(type)));
    }
  }
  return {};
}

}  // namespace

Fits CheckTransformer(const TransformerModel& model) {
  ETUDE_RETURN_IF_MISFIT(CheckDimensions(model));
  if (model.heads % model.kv_heads != 0) {
    return MakeMisfit({"model.kv_heads", "model.heads"},
                      fmt::format("kv_heads: found {}, expected a divisor of the {} heads",
                                  model.kv_heads, model.heads));
  }
  if (model.positions != 0 && model.positions < model.sequence) {
    return MakeMisfit(
        {"model.positions", "model.sequence"},
        fmt::format("positions: found {}, expected 0 or at least the {} of a sequence",
                    model.positions, model.sequence));
  }
  if (model.experts) {
    ETUDE_RETURN_IF_MISFIT(CheckExperts(*model.experts, model.layers));
    if (model.biases)
      return MakeMisfit({"model.biases", "experts"},
                        "biases: found true, expected false with experts");
  }
  if (model.latent) ETUDE_RETURN_IF_MISFIT(CheckLatent(model));
  ETUDE_RETURN_IF_MISFIT(CheckTypes(model));
  // Parameters, with room for 16 bytes each and for their sums.
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  double ffn = real(model.ffn);
  if (model.experts) {
    ffn = std::max(ffn, real(model.experts->experts) * real(model.experts->ffn) +
                            real(model.experts->shared_ffn) + real(model.experts->experts));
  }
  const double head = real(std::max(model.head_size, model.value_size()));
  double layer = real(model.hidden) * (4 * real(model.heads) * head + 3 * ffn + 16);
  if (model.latent) {
    const LatentAttention& latent = *model.latent;
    layer += (real(latent.query_rank) + real(latent.kv_rank) + real(latent.rope_size)) *
             (real(model.hidden) + 2 * real(model.heads) * head + 2);
  }
  const double parameters =
      real(model.layers) * layer +
      2 * real(model.hidden) * (real(model.vocabulary) + real(model.positions));
  if (parameters > std::ldexp(1, 55)) {
    return MakeMisfit({"model"},
                      fmt::format("found about {:.1e} parameters, expected fewer than {:.1e}",
                                  parameters, std::ldexp(1, 55)));
  }
  return {};
}

int64_t NormElements(const TransformerModel& model, int64_t width) {
  return model.norm == NormKind::kLayerNorm ? 2 * width : width;
}

bool HasExperts(const TransformerModel& model, int64_t layer) {
  return model.experts && layer >= model.experts->dense_layers;
}

std::vector<TransformerWeight> LayerWeights(const TransformerModel& model, int64_t layer) {
  std::vector<TransformerWeight> weights;
  AddNorm(model, "attention norm", model.hidden, weights);
  model.latent ? AddLatentQkv(model, weights) : AddQkv(model, weights);
  weights.push_back({.name = "projection",
                     .rows = model.heads * model.value_size(),
                     .columns = model.hidden,
                     .split = WeightSplit::kTensor});
  if (model.biases) {
    weights.push_back({.name = "projection bias", .rows = 1, .columns = model.hidden});
  }
  AddNorm(model, "ffn norm", model.hidden, weights);
  if (!HasExperts(model, layer)) {
    AddFeedForward(model, "up", "down", model.ffn, weights);
    return weights;
  }
  const ExpertsModel& experts = *model.experts;
  weights.push_back({.name = "router", .rows = experts.experts, .columns = model.hidden});
  if (experts.shared_ffn != 0) {
    AddFeedForward(model, "shared up", "shared down", experts.shared_ffn, weights);
  }
  weights.push_back({.name = "experts up",
                     .rows = model.gated ? 2 * experts.ffn : experts.ffn,
                     .columns = model.hidden,
                     .count = experts.experts,
                     .split = WeightSplit::kExperts});
  weights.push_back({.name = "experts down",
                     .rows = experts.ffn,
                     .columns = model.hidden,
                     .count = experts.experts,
                     .split = WeightSplit::kExperts});
  return weights;
}

std::vector<TransformerWeight> EmbeddingWeights(const TransformerModel& model) {
  std::vector<TransformerWeight> weights = {{.name = "embedding",
                                             .rows = model.vocabulary,
                                             .columns = model.hidden,
                                             .split = WeightSplit::kTensor}};
  if (model.positions != 0) {
    weights.push_back({.name = "positions", .rows = model.positions, .columns = model.hidden});
  }
  return weights;
}

std::vector<TransformerWeight> HeadWeights(const TransformerModel& model) {
  std::vector<TransformerWeight> weights;
  AddNorm(model, "final norm", model.hidden, weights);
  if (!model.tied) {
    weights.push_back({.name = "head",
                       .rows = model.vocabulary,
                       .columns = model.hidden,
                       .split = WeightSplit::kTensor});
  }
  return weights;
}

int64_t ParameterCount(const TransformerModel& model) {
  const int64_t dense = model.experts ? model.experts->dense_layers : model.layers;
  int64_t count = Sum(EmbeddingWeights(model)) + Sum(HeadWeights(model));
  if (dense > 0) count += dense * Sum(LayerWeights(model, 0));
  if (dense < model.layers) count += (model.layers - dense) * Sum(LayerWeights(model, dense));
  return count;
}

int64_t ActiveParameterCount(const TransformerModel& model) {
  TransformerModel active = model;
  int64_t router = 0;
  if (model.experts) {
    const ExpertsModel& experts = *model.experts;
    active.experts->experts = experts.top_k;
    router =
        (experts.experts - experts.top_k) * model.hidden * (model.layers - experts.dense_layers);
  }
  return ParameterCount(active) + router;
}

std::span<const TransformerPreset> TransformerPresets() {
  static const auto presets = std::to_array<TransformerPreset>({
      {"gpt-3-175b", "Brown et al. 2020, arXiv 2005.14165, table 2.1; vocabulary of GPT-2", Gpt3()},
      {"llama-2-7b", kLlama2Source, Llama(32, 4096, 32, 32, 11008, 32000, 4096)},
      {"llama-2-70b", kLlama2Source, Llama(80, 8192, 64, 8, 28672, 32000, 4096)},
      {"llama-3-8b", kLlama3Source, Llama(32, 4096, 32, 8, 14336, 128256, 8192)},
      {"llama-3-70b", kLlama3Source, Llama(80, 8192, 64, 8, 28672, 128256, 8192)},
      {"llama-3-405b", kLlama3Source, Llama(126, 16384, 128, 8, 53248, 128256, 8192)},
      {"mixtral-8x7b", "Jiang et al. 2024, arXiv 2401.04088, table 1",
       Routed(Llama(32, 4096, 32, 8, 14336, 32000, 32768), 8, 2)},
      {"mixtral-8x22b", "Mistral AI 2024, Mixtral-8x22B-v0.1: the model's config.json",
       Routed(Llama(56, 6144, 48, 8, 16384, 32000, 65536), 8, 2)},
      {"qwen3-30b-a3b", kQwen3Source, Qwen3(48, 2048, 32, 768)},
      {"qwen3-235b-a22b", kQwen3Source, Qwen3(94, 4096, 64, 1536)},
      {"dbrx", "Databricks 2024, dbrx-base: the model's config.json", Dbrx()},
      {"deepseek-moe-16b",
       "Dai et al. 2024, arXiv 2401.06066, section 5.1; the model's config.json", DeepSeekMoe()},
      {"deepseek-v2-lite", kDeepSeekV2Source, DeepSeekV2(27, 2048, 16, 0, 10944, 1408, 64)},
      {"deepseek-v2", kDeepSeekV2Source, DeepSeekV2(60, 5120, 128, 1536, 12288, 1536, 160)},
      {"deepseek-v3",
       "DeepSeek-AI 2024, arXiv 2412.19437, section 4.2; the model's config.json; without "
       "multi-token prediction",
       DeepSeekV3()},
  });
  return presets;
}

}  // namespace etude
