#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/synth/device/misfit.h"
#include "src/synth/network/product_shape.h"
#include "src/synth/transformer/transformer_model.h"
#include "src/trace/words/enums.h"

// Work of one rank for one layer and one micro-batch. docs/models/transformer.md has the formulas
// and their sources.
namespace etude {

enum class AttentionKind : uint8_t {
  kFused,    // scores never reach memory, backward recomputes them: FlashAttention
  kUnfused,  // two matrix products with a softmax in between
};

// Data exchanged by context-parallel ranks for attention.
enum class ContextKind : uint8_t {
  kAllGather,  // keys and values, so that each rank has all of them
  kRing,       // keys and values block by block, overlapped with computation on the current block
  kAllToAll,   // tokens against heads, so that each rank has some heads for whole sequences
};

// Activations that backward recomputes.
enum class Recompute : uint8_t {
  kNone,
  kSelective,  // the core of unfused attention; fused attention does not keep it anyway
  kFull,       // everything except the layer's input
};

// Tokens that go through the model at once, without backward. Their keys and values are appended to
// a cache with those of earlier tokens.
struct InferencePass {
  int64_t tokens = 1;  // per sequence
  int64_t cached = 0;  // earlier ones per sequence
  DType cache = DType::kBFloat16;
};

// Distribution of layers over ranks, and number of sequences per rank.
struct LayerPlan {
  int64_t tensor = 1;  // ranks that share each layer's matrices
  // True if these ranks also share the layers between the matrices, by tokens.
  bool sequence_parallel = true;
  int64_t context = 1;  // ranks that share each sequence
  ContextKind context_kind = ContextKind::kAllGather;
  int64_t expert = 1;     // ranks that share a layer's experts
  int64_t sequences = 1;  // per micro-batch
  AttentionKind attention = AttentionKind::kFused;
  bool causal = true;  // fused attention skips masked pairs
  Recompute recompute = Recompute::kNone;
  std::optional<InferencePass> inference;  // nullopt: training
};

// Return the tokens per sequence that go through the model at once, and those that they attend to.
int64_t PassTokens(const TransformerModel& model, const LayerPlan& plan);
int64_t SeenTokens(const TransformerModel& model, const LayerPlan& plan);
// Returns the elements of a layer's output on a rank.
int64_t StateElements(const TransformerModel& model, const LayerPlan& plan);
// Returns the bytes of keys and values of one token in all layers' caches, over all ranks.
Bytes CacheBytesPerToken(const TransformerModel& model, DType cache);

// Returns kBadInput, with the expected values, unless each dimension can be split as planned and
// all numbers of a layer fit into 64 bits. The model must have passed CheckTransformer.
Fits CheckLayerPlan(const TransformerModel& model, const LayerPlan& plan);

// Ranks that communicate.
enum class LayerAxis : uint8_t { kTensor, kContext, kExpert };

// Direction of a message: to the next rank of an axis, wrapping around, or from the previous one.
enum class LayerMessage : uint8_t { kNone, kToNext, kFromPrevious };

struct LayerWork {
  std::string name;
  // Indices of earlier work of the same pass. If empty, it depends on the input of the pass: the
  // layer's input, or the gradient of its output.
  std::vector<size_t> inputs;
  // True if only gradients of weights need it: no other layer waits for it.
  bool for_weights = false;
  // Names of the weights in TransformerModel whose gradients it computes, in their order.
  std::vector<std::string> gives_gradients;

  // Computation. An addition and a multiplication are two operations.
  int64_t flops = 0;
  int64_t matrix_flops = 0;  // the part in matrix products
  ProductShape product;      // set if it consists of matrix products of one shape
  Bytes read;                // from memory, each operand once
  Bytes written;
  Bytes kept;    // operands kept for backward
  Bytes cached;  // appended to the cache of inference

  // Communication: a collective, a message, or neither. `bytes` is the input of each rank, Chakra's
  // comm_size as used by ASTRA-sim. The dependencies of a received message are only an order.
  CollectiveType collective = CollectiveType::kUnknown;
  LayerMessage message = LayerMessage::kNone;
  LayerAxis axis = LayerAxis::kTensor;
  Bytes bytes;

  bool communicates() const {
    return collective != CollectiveType::kUnknown || message != LayerMessage::kNone;
  }
};

// Passes in an order in which their work can run sequentially; inference has no `backward`. The
// last work of `forward` computes the output, the last work of `backward` that is not for weights
// the gradient of the input.
struct LayerPasses {
  std::vector<LayerWork> forward;
  std::vector<LayerWork> backward;
};

// Makes the passes of a layer. The plan must have passed CheckLayerPlan. If tokens prefer some
// experts, the work of a rank depends on its experts and on the layer; `expert_rank` is its index
// among the ranks that share them.
LayerPasses TransformerLayer(const TransformerModel& model, const LayerPlan& plan, int64_t layer,
                             int64_t expert_rank = 0);
LayerPasses TransformerEmbedding(const TransformerModel& model, const LayerPlan& plan);
// Makes the final norm, the head and the loss; backward has no input gradient. For inference: the
// choice of each sequence's next token, which all ranks then have.
LayerPasses TransformerHead(const TransformerModel& model, const LayerPlan& plan);

// Returns the elements of a weight on each rank; the last rank may have fewer valid rows of the
// vocabulary.
int64_t ElementsOnRank(const TransformerWeight& weight, const LayerPlan& plan);

// Returns Adam's work to update `parameters`, with all states on the rank.
LayerWork OptimizerWork(const TransformerModel& model, int64_t parameters);

// Returns the work for the sum of squares of `parameters` gradients, a number in single precision.
LayerWork NormWork(const TransformerModel& model, int64_t parameters);

// Memory of a rank for a number of parameters that `ranks` share by ZeRO's stage: 1 optimizer
// states, 2 also gradients, 3 also weights. Rounded up to whole elements.
struct ModelStates {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;

  Bytes total() const { return weights + gradients + optimizer; }
};
ModelStates StatesOnRank(const TransformerModel& model, int64_t parameters, int zero_stage,
                         int64_t ranks);

}  // namespace etude
