#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/synth/device/misfit.h"
#include "src/synth/preset.h"
#include "src/trace/words/enums.h"

// Decoder-only transformers by their shapes. docs/models/transformer.md has the formulas and their
// sources.
namespace etude {

enum class NormKind : uint8_t {
  kLayerNorm,
  kRmsNorm,
  kLayerNormNoOffset,  // scale only
};

// Mixture of experts: feed-forward parts, some of which each token goes through.
struct ExpertsModel {
  int64_t experts = 0;
  int64_t top_k = 0;         // experts per token
  int64_t ffn = 0;           // units of one expert
  int64_t shared_ffn = 0;    // units of the shared expert of all tokens; 0: none
  int64_t dense_layers = 0;  // number of first layers with an ordinary feed-forward part
  // Max rows of an expert relative to the mean; tokens beyond it are dropped. nullopt: 1 if all
  // experts have equally many rows, otherwise no limit.
  std::optional<double> capacity_factor;
  // Imbalance of the experts: exponent of Zipf's law, 0 for equal popularity, and the seed of their
  // ranking; or else a share of each expert, in any unit.
  double imbalance = 0;
  int64_t seed = 0;
  std::vector<double> shares;

  friend bool operator==(const ExpertsModel&, const ExpertsModel&) = default;
};

// Multi-head latent attention: queries, keys and values are computed from narrower vectors.
struct LatentAttention {
  int64_t query_rank = 0;  // width of the vector for queries; 0: the hidden units
  int64_t kv_rank = 0;     // width of the vector for keys and values
  int64_t nope_size = 0;   // part of a query and a key without positions
  int64_t rope_size = 0;   // following part with rotary positions; the keys of all heads share it
  int64_t value_size = 0;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct TransformerModel {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;   // a divisor of `heads`
  int64_t head_size = 0;  // of queries and keys
  int64_t ffn = 0;
  bool gated = true;  // the feed-forward part multiplies two up-projections: SwiGLU, else GELU
  bool biases = false;
  NormKind norm = NormKind::kRmsNorm;
  bool qk_norm = false;  // RMSNorm of each head's queries and keys
  int64_t vocabulary = 0;
  bool tied = false;      // the head uses the embedding's weights
  int64_t positions = 0;  // learned ones; 0: rotary
  int64_t sequence = 0;   // tokens of a training sequence
  std::optional<ExpertsModel> experts;
  std::optional<LatentAttention> latent;
  DType weights = DType::kBFloat16;  // and activations
  DType gradients = DType::kFloat32;
  DType optimizer = DType::kFloat32;  // moments and the copy of the weights

  int64_t value_size() const { return latent ? latent->value_size : head_size; }

  friend bool operator==(const TransformerModel&, const TransformerModel&) = default;
};

// Returns kBadInput, with the expected values, unless the shapes fit together and the numbers of a
// step fit into 64 bits.
Fits CheckTransformer(const TransformerModel& model);

// Distribution of a weight over ranks.
enum class WeightSplit : uint8_t {
  kNone,     // each rank has all of it
  kTensor,   // over the tensor-parallel ranks
  kExperts,  // by expert over the expert-parallel ranks, and each expert over the tensor-parallel
             // ones
};

struct TransformerWeight {
  std::string_view name;
  int64_t rows = 0;  // of the split dimension, if it is split; per expert
  int64_t columns = 0;
  int64_t count = 1;  // number of experts
  WeightSplit split = WeightSplit::kNone;
  // True if each tensor-parallel rank uses it for its own heads and has a part of its gradient.
  bool by_heads = false;

  int64_t elements() const { return rows * columns * count; }
};

// Returns the elements of a norm of `width` units: scales, and offsets if it has them.
int64_t NormElements(const TransformerModel& model, int64_t width);
bool HasExperts(const TransformerModel& model, int64_t layer);
// Return the weights of one layer, of the embedding, and of the final norm and the head, in the
// order in which the forward pass uses them. A tied head has no weight of its own.
std::vector<TransformerWeight> LayerWeights(const TransformerModel& model, int64_t layer);
std::vector<TransformerWeight> EmbeddingWeights(const TransformerModel& model);
std::vector<TransformerWeight> HeadWeights(const TransformerModel& model);

int64_t ParameterCount(const TransformerModel& model);
// Returns the number of parameters that one token uses: of the experts, `top_k` of each layer.
int64_t ActiveParameterCount(const TransformerModel& model);

using TransformerPreset = Preset<TransformerModel>;
std::span<const TransformerPreset> TransformerPresets();

}  // namespace etude
