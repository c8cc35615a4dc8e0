#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/synth/layer_works.h"

namespace etude {

// Attention of a layer, from the preceding norm to the residual sum. Adds to passes owned by
// others.
class TransformerAttention {
 public:
  using In = LayerWorks::In;

  TransformerAttention(const TransformerModel& model, const LayerPlan& plan, LayerWorks& forward,
                       LayerWorks& backward)
      : model_(model), plan_(plan), forward_(forward), backward_(backward) {}

  In Forward();
  // Adds the backward pass, after Forward. `in`: the gradient of the output.
  void Backward(const In& in);

 private:
  bool Exchanges(ContextKind kind) const { return plan_.context > 1 && plan_.context_kind == kind; }
  // Heads of the rank in the projections. With all-to-all, each rank has a part of them in the
  // core, for as many times more tokens.
  int64_t Heads() const { return model_.heads / plan_.tensor; }
  int64_t KvHeads() const { return model_.kv_heads / plan_.tensor; }
  // Elements of the rank's queries, keys, values and outputs.
  int64_t QuerySize() const { return forward_.tokens() * Heads() * model_.head_size; }
  int64_t KeySize() const { return forward_.tokens() * KvHeads() * model_.head_size; }
  int64_t ValueSize() const { return forward_.tokens() * KvHeads() * model_.value_size(); }
  int64_t OutputSize() const { return forward_.tokens() * Heads() * model_.value_size(); }
  // Keys and values in the core, which may include those of other ranks.
  int64_t Gathered() const { return Exchanges(ContextKind::kAllGather) ? plan_.context : 1; }
  int64_t AllKeySize() const { return Gathered() * KeySize(); }
  int64_t AllValueSize() const { return Gathered() * ValueSize(); }

  // Bytes of keys and values in the core, including earlier tokens in a cache.
  int64_t CacheElement() const;
  int64_t CachedBytes(int64_t size) const;
  int64_t ReadKeyBytes() const;
  int64_t ReadValueBytes() const;

  bool LooksBackOnly() const { return plan_.causal && plan_.attention == AttentionKind::kFused; }
  // Returns the number of attended query-key pairs, over all sequences and heads of the rank.
  int64_t Pairs() const;
  // Returns those with the keys of one block of a ring.
  int64_t BlockPairs(int64_t block) const;
  // Operations of a product of `pairs` pairs over the size of a query, or of a value.
  int64_t QueryFlops(int64_t pairs) const { return 2 * model_.head_size * pairs; }
  int64_t ValueFlops(int64_t pairs) const { return 2 * model_.value_size() * pairs; }

  MatrixProduct Qkv() const;
  MatrixProduct Projection() const;
  // For latent attention. Down-projections work on the tokens between the matrices: each
  // tensor-parallel rank has all of their weights.
  MatrixProduct Down(int64_t width) const;
  MatrixProduct QueryUp() const;
  MatrixProduct KvUp() const;

  // Add queries, keys and values of the normalised hidden units.
  In Project(const In& in);
  In ProjectLatent(const In& in);
  // Add the gradients back to the layer's input.
  void ProjectBackward(const In& in);
  void ProjectLatentBackward(const In& in);
  In NormHeads(const In& in);
  In NormHeadsBackward(const In& in);
  In Rotate(const In& in);
  In RotateBackward(const In& in);
  void AppendToCache(const In& in);

  In ExchangeContext(LayerWorks& works, const std::string& name, In in, CollectiveType type,
                     int64_t elements) const;
  In CoreForward(const In& in);
  In CoreBackward(const In& in);
  In RingForward(const In& in);
  In RingBackward(const In& in);

  const TransformerModel& model_;
  const LayerPlan& plan_;
  LayerWorks& forward_;
  LayerWorks& backward_;
  size_t core_begin_ = 0;  // index in forward
  size_t core_end_ = 0;
};

}  // namespace etude
