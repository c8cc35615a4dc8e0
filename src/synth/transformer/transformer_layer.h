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

// What one rank does for one layer and one micro-batch. docs/models/transformer.md has the formulas
// and where they are from.
namespace etude {

enum class AttentionKind : uint8_t {
  kFused,    // scores never reach memory, backward computes them again: FlashAttention
  kUnfused,  // two matrix products and a softmax between them
};

// What context-parallel ranks exchange for attention.
enum class ContextKind : uint8_t {
  kAllGather,  // keys and values, of which each rank has all then
  kRing,       // the same block by block, while the rank computes on the block that is there
  kAllToAll,   // tokens for heads, of which each rank has some for whole sequences then
};

// What backward computes again instead of keeping it.
enum class Recompute : uint8_t {
  kNone,
  kSelective,  // the core of unfused attention; fused attention keeps nothing of it anyway
  kFull,       // everything but the layer's input
};

// Tokens that go through the model at once, without a way back. Their keys and values are added to
// a cache, in which are those of earlier tokens.
struct InferencePass {
  int64_t tokens = 1;  // of each sequence
  int64_t cached = 0;  // earlier ones of each sequence
  DType cache = DType::kBFloat16;
};

// How layers are spread over ranks, and how many sequences a rank is given.
struct LayerPlan {
  int64_t tensor = 1;  // ranks that share each layer's matrices
  // These ranks also share what lies between the matrices, by tokens.
  bool sequence_parallel = true;
  int64_t context = 1;  // ranks that share each sequence
  ContextKind context_kind = ContextKind::kAllGather;
  int64_t expert = 1;     // ranks that share a layer's experts
  int64_t sequences = 1;  // of a micro-batch
  AttentionKind attention = AttentionKind::kFused;
  bool causal = true;  // fused attention leaves out pairs that are masked
  Recompute recompute = Recompute::kNone;
  std::optional<InferencePass> inference;  // nullopt: training
};

// Of each sequence: those that go through the model at once, and those that they look at.
int64_t PassTokens(const TransformerModel& model, const LayerPlan& plan);
int64_t SeenTokens(const TransformerModel& model, const LayerPlan& plan);
// Elements of what a layer gives the next one, on a rank.
int64_t StateElements(const TransformerModel& model, const LayerPlan& plan);
// Of keys and values of one token in all layers' caches together, over all ranks.
Bytes CacheBytesPerToken(const TransformerModel& model, DType cache);

// kBadInput, with what was expected, unless each dimension can be split as planned and all numbers
// of a layer fit into 64 bits. The model has passed CheckTransformer.
Fits CheckLayerPlan(const TransformerModel& model, const LayerPlan& plan);

// Which ranks communicate.
enum class LayerAxis : uint8_t { kTensor, kContext, kExpert };

// To the next rank of an axis, around its end, or from the one before.
enum class LayerMessage : uint8_t { kNone, kToNext, kFromPrevious };

struct LayerWork {
  std::string name;
  // Indices of earlier work of the same pass. Without any it waits for what comes into the pass:
  // the layer's input, or the gradient of its output.
  std::vector<size_t> inputs;
  // Only the gradients of weights need it: no other layer waits for it.
  bool for_weights = false;
  // Weights of TransformerModel whose gradients it gives, by name, in the order in which they are
  // there.
  std::vector<std::string> gives_gradients;

  // Computation. An addition and a multiplication are two operations.
  int64_t flops = 0;
  int64_t matrix_flops = 0;  // of them, in matrix products
  ProductShape product;      // what it is, if it is matrix products of one shape
  Bytes read;                // from memory, each operand once
  Bytes written;
  Bytes kept;    // of its operands, for backward
  Bytes cached;  // that it adds to the cache of inference

  // Communication: a collective, a message, or neither. `bytes` is what each rank puts in, Chakra's
  // comm_size as ASTRA-sim takes it. What a message that is received waits for is an order only.
  CollectiveType collective = CollectiveType::kUnknown;
  LayerMessage message = LayerMessage::kNone;
  LayerAxis axis = LayerAxis::kTensor;
  Bytes bytes;

  bool communicates() const {
    return collective != CollectiveType::kUnknown || message != LayerMessage::kNone;
  }
};

// In an order in which they can run one after the other; inference has no `backward`. The last work
// of `forward` gives the output, the last work of `backward` that is not for weights the gradient
// of the input.
struct LayerPasses {
  std::vector<LayerWork> forward;
  std::vector<LayerWork> backward;
};

// The plan has passed CheckLayerPlan. Where tokens prefer some experts, what a rank does depends on
// those it has and on the layer; `expert_rank` is its place among those that share them.
LayerPasses TransformerLayer(const TransformerModel& model, const LayerPlan& plan, int64_t layer,
                             int64_t expert_rank = 0);
LayerPasses TransformerEmbedding(const TransformerModel& model, const LayerPlan& plan);
// The final norm, the head and the loss. There is no gradient to wait for. In inference: the choice
// of each sequence's next token, which all ranks know then.
LayerPasses TransformerHead(const TransformerModel& model, const LayerPlan& plan);

// Elements of a weight on each rank; the last of the ranks may have fewer rows of the vocabulary
// that count.
int64_t ElementsOnRank(const TransformerWeight& weight, const LayerPlan& plan);

// What Adam reads, writes and computes to update so many parameters, of which the rank has
// everything.
LayerWork OptimizerWork(const TransformerModel& model, int64_t parameters);

// The sum of the squares of so many gradients, a number in single precision.
LayerWork NormWork(const TransformerModel& model, int64_t parameters);

// Memory of a rank for so many parameters when `ranks` share it as ZeRO's stage says: 1 the
// optimizer's, 2 gradients too, 3 weights too. Rounded up to whole elements.
struct ModelStates {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;

  Bytes total() const { return weights + gradients + optimizer; }
};
ModelStates StatesOnRank(const TransformerModel& model, int64_t parameters, int zero_stage,
                         int64_t ranks);

}  // namespace etude
