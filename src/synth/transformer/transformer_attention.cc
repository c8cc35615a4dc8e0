#include "src/synth/transformer/transformer_attention.h"

#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

// Operations per element; functions such as exp and tanh count as one.
constexpr int64_t kRotaryFlops = 3;
constexpr int64_t kHeadNormFlops = 4;
constexpr int64_t kHeadNormBackwardFlops = 9;
constexpr int64_t kSoftmaxFlops = 6;          // scale, maximum, subtract, exp, sum, divide
constexpr int64_t kSoftmaxBackwardFlops = 5;  // multiply, sum, subtract, multiply, scale
constexpr int64_t kSoftmaxAgainFlops = 3;     // from the kept sum: scale, subtract, exp
constexpr int64_t kJoinFlops = 3;             // of outputs of two blocks: scale both, add

}  // namespace

int64_t TransformerAttention::CacheElement() const {
  return plan_.inference ? ElementBytes(plan_.inference->cache).value_or(0) : 0;
}

int64_t TransformerAttention::CachedBytes(int64_t size) const {
  const int64_t tokens = SeenTokens(model_, plan_) - PassTokens(model_, plan_);
  return tokens * plan_.sequences * KvHeads() * size * CacheElement();
}

int64_t TransformerAttention::ReadKeyBytes() const {
  return AllKeySize() * forward_.element() + CachedBytes(model_.head_size);
}

int64_t TransformerAttention::ReadValueBytes() const {
  return AllValueSize() * forward_.element() + CachedBytes(model_.value_size());
}

int64_t TransformerAttention::Pairs() const {
  const bool shares_heads = Exchanges(ContextKind::kAllToAll);
  const int64_t heads = shares_heads ? Heads() / plan_.context : Heads();
  const int64_t tokens = PassTokens(model_, plan_);
  const int64_t seen = SeenTokens(model_, plan_);
  const int64_t queries = shares_heads ? tokens : tokens / plan_.context;
  // Each rank of a sequence has an early and a late piece, so that all have equally many pairs.
  return plan_.sequences * heads *
         (LooksBackOnly() ? queries * (seen - tokens) + queries * (tokens + 1) / 2
                          : queries * seen);
}

int64_t TransformerAttention::BlockPairs(int64_t block) const {
  const int64_t queries = PassTokens(model_, plan_) / plan_.context;
  if (!LooksBackOnly()) return plan_.sequences * Heads() * queries * queries;
  // For another rank's keys, all queries attend to those of the early piece, or the late queries to
  // all.
  return plan_.sequences * Heads() * queries * (block == 0 ? queries + 1 : queries) / 2;
}

MatrixProduct TransformerAttention::Qkv() const {
  return {.rows = forward_.tokens(),
          .in = model_.hidden,
          .out = (Heads() + 2 * KvHeads()) * model_.head_size,
          .bias = model_.biases};
}

// Its bias is added after the sum over ranks.
MatrixProduct TransformerAttention::Projection() const {
  return {.rows = forward_.tokens(), .in = Heads() * model_.value_size(), .out = model_.hidden};
}

MatrixProduct TransformerAttention::Down(int64_t width) const {
  return {.rows = forward_.shared_tokens(), .in = model_.hidden, .out = width};
}

MatrixProduct TransformerAttention::QueryUp() const {
  const int64_t rank = model_.latent->query_rank;
  return {.rows = forward_.tokens(),
          .in = rank == 0 ? model_.hidden : rank,
          .out = Heads() * model_.head_size};
}

MatrixProduct TransformerAttention::KvUp() const {
  return {.rows = forward_.tokens(),
          .in = model_.latent->kv_rank,
          .out = Heads() * (model_.latent->nope_size + model_.latent->value_size)};
}

TransformerAttention::In TransformerAttention::Project(const In& in) {
  if (model_.latent) return ProjectLatent(in);
  return forward_.Multiply("qkv", forward_.GatherTokens("qkv", in), Qkv(), forward_.SharedSize());
}

TransformerAttention::In TransformerAttention::ProjectLatent(const In& in) {
  const LatentAttention& latent = *model_.latent;
  const int64_t tokens = forward_.shared_tokens();
  In queries;
  if (latent.query_rank == 0) {
    queries = forward_.Multiply("query", forward_.GatherTokens("query", in), QueryUp(),
                                forward_.SharedSize());
  } else {
    queries = forward_.Multiply("query down", in, Down(latent.query_rank), forward_.SharedSize());
    queries = forward_.Norm("query norm", queries, {.width = latent.query_rank});
    queries = forward_.GatherTokens("query", queries, latent.query_rank);
    queries = forward_.Multiply("query up", queries, QueryUp(), tokens * latent.query_rank);
  }
  // The part of the keys with positions bypasses the norm. The input has been kept.
  const int64_t width = latent.kv_rank + latent.rope_size;
  In kv = forward_.Multiply("kv down", in, Down(width), 0);
  kv = forward_.GatherTokens("kv", forward_.Norm("kv norm", kv, {.width = latent.kv_rank}), width);
  kv = forward_.Multiply("kv up", kv, KvUp(), tokens * latent.kv_rank);
  return {queries.front(), kv.front()};
}

void TransformerAttention::ProjectBackward(const In& in) {
  if (model_.latent) return ProjectLatentBackward(in);
  const In gradient =
      backward_.SumTokens("qkv gradient", backward_.InputGradient("qkv", in, Qkv()));
  backward_.WeightGradient("qkv", in, Qkv(), forward_.SharedBytes());
  backward_.NormBackward("attention norm", gradient, 1);
}

void TransformerAttention::ProjectLatentBackward(const In& in) {
  const LatentAttention& latent = *model_.latent;
  const int64_t token_bytes = forward_.shared_tokens() * forward_.element();
  In queries;
  if (latent.query_rank == 0) {
    queries =
        backward_.SumTokens("query gradient", backward_.InputGradient("query", in, QueryUp()));
    backward_.WeightGradient("query", in, QueryUp(), forward_.SharedBytes());
  } else {
    queries = backward_.SumTokens(
        "query gradient", backward_.InputGradient("query up", in, QueryUp()), latent.query_rank);
    backward_.WeightGradient("query up", in, QueryUp(), token_bytes * latent.query_rank);
    const In before = backward_.NormBackward("query norm", queries, 0, latent.query_rank);
    queries = backward_.InputGradient("query down", before, Down(latent.query_rank));
    backward_.WeightGradient("query down", before, Down(latent.query_rank), 0);
  }
  const int64_t width = latent.kv_rank + latent.rope_size;
  In kv = backward_.SumTokens("kv gradient", backward_.InputGradient("kv up", in, KvUp()), width);
  backward_.WeightGradient("kv up", in, KvUp(), token_bytes * latent.kv_rank);
  const In before = backward_.NormBackward("kv norm", kv, 0, latent.kv_rank);
  kv = backward_.InputGradient("kv down", before, Down(width));
  backward_.WeightGradient("kv down", before, Down(width), 0);
  backward_.NormBackward("attention norm", {queries.front(), kv.front()}, 2);
}

TransformerAttention::In TransformerAttention::NormHeads(const In& in) {
  if (!model_.qk_norm) return in;
  const int64_t size = QuerySize() + KeySize();
  return forward_.Elementwise("head norms", in, size, kHeadNormFlops,
                              {.read = size + 2 * model_.head_size, .written = size, .kept = size});
}

TransformerAttention::In TransformerAttention::NormHeadsBackward(const In& in) {
  if (!model_.qk_norm) return in;
  const int64_t size = QuerySize() + KeySize();
  const int64_t weights = 2 * model_.head_size;
  const int64_t element = backward_.element();
  const int64_t gradient = backward_.gradient();
  return backward_.Add({.name = "head norms backward",
                        .inputs = in,
                        .gives_gradients = {"query norm", "key norm"},
                        .flops = kHeadNormBackwardFlops * size,
                        .read = Bytes{(2 * size + weights) * element + weights * gradient},
                        .written = Bytes{size * element + weights * gradient}});
}

void TransformerAttention::AppendToCache(const In& in) {
  if (!plan_.inference) return;
  const int64_t size = KeySize() + ValueSize();
  forward_.Add({.name = "cache append",
                .inputs = in,
                .read = Bytes{size * forward_.element()},
                .written = Bytes{size * CacheElement()},
                .cached = Bytes{size * CacheElement()}});
}

TransformerAttention::In TransformerAttention::Rotate(const In& in) {
  if (model_.positions != 0) return in;
  if (!model_.latent) {
    const int64_t size = QuerySize() + KeySize();
    return forward_.Elementwise("rotary", in, size, kRotaryFlops, {.read = size, .written = size});
  }
  // Each head's keys are concatenated from its own part and the common one.
  const int64_t queries = forward_.tokens() * Heads() * model_.latent->rope_size;
  const int64_t common = forward_.tokens() * model_.latent->rope_size;
  return forward_.Elementwise("rotary", in, queries + common, kRotaryFlops,
                              {.read = KeySize() + common, .written = queries + KeySize()});
}

TransformerAttention::In TransformerAttention::RotateBackward(const In& in) {
  if (model_.positions != 0) return in;
  if (!model_.latent) {
    const int64_t size = QuerySize() + KeySize();
    return backward_.Elementwise("rotary backward", in, size, kRotaryFlops,
                                 {.read = size, .written = size});
  }
  const int64_t queries = forward_.tokens() * Heads() * model_.latent->rope_size;
  const int64_t common = forward_.tokens() * model_.latent->rope_size;
  const int64_t element = backward_.element();
  // Sums the values of all heads.
  return backward_.Add({.name = "rotary backward",
                        .inputs = in,
                        .flops = kRotaryFlops * (queries + common) + queries - common,
                        .read = Bytes{(queries + KeySize()) * element},
                        .written = Bytes{(KeySize() + common) * element}});
}

TransformerAttention::In TransformerAttention::ExchangeContext(LayerWorks& works,
                                                               const std::string& name, In in,
                                                               CollectiveType type,
                                                               int64_t elements) const {
  return works.Collective(fmt::format("{} {}", name, Name(type)), std::move(in), type,
                          LayerAxis::kContext, elements * works.element());
}

TransformerAttention::In TransformerAttention::Forward() {
  In out = Project(forward_.Norm("attention norm", {}));
  out = Rotate(NormHeads(out));
  AppendToCache(out);
  if (Exchanges(ContextKind::kAllGather)) {
    out =
        ExchangeContext(forward_, "keys", out, CollectiveType::kAllGather, KeySize() + ValueSize());
  } else if (Exchanges(ContextKind::kAllToAll)) {
    out = ExchangeContext(forward_, "qkv", out, CollectiveType::kAllToAll,
                          QuerySize() + KeySize() + ValueSize());
  }
  core_begin_ = forward_.works().size();
  out = Exchanges(ContextKind::kRing) ? RingForward(out) : CoreForward(out);
  core_end_ = forward_.works().size();
  if (Exchanges(ContextKind::kAllToAll)) {
    out = ExchangeContext(forward_, "attention", out, CollectiveType::kAllToAll, OutputSize());
  }
  out = forward_.Multiply("projection", out, Projection(), OutputSize());
  out = forward_.SumTokens("projection", out);
  forward_.Residual("attention residual", out, 1);
  return {forward_.works().size() - 1};
}

void TransformerAttention::Backward(const In& in) {
  backward_.BiasGradient("projection bias", in);
  const In all = backward_.GatherTokens("projection gradient", in);
  In gradient = backward_.InputGradient("projection", all, Projection());
  backward_.WeightGradient("projection", all, Projection(), 0);
  if (Exchanges(ContextKind::kAllGather)) {
    gradient =
        backward_.Collective("keys all_gather again", gradient, CollectiveType::kAllGather,
                             LayerAxis::kContext, (KeySize() + ValueSize()) * backward_.element());
  } else if (Exchanges(ContextKind::kAllToAll)) {
    gradient = ExchangeContext(backward_, "attention gradient", gradient, CollectiveType::kAllToAll,
                               OutputSize());
  }
  if (plan_.recompute == Recompute::kSelective && plan_.attention == AttentionKind::kUnfused) {
    const size_t first = backward_.works().size();
    gradient = backward_.Again(forward_, core_begin_, core_end_, gradient);
    LayerWork& softmax = backward_.works()[first + 1];
    softmax.kept = Bytes{Pairs() * backward_.element()};
  }
  gradient = Exchanges(ContextKind::kRing) ? RingBackward(gradient) : CoreBackward(gradient);
  if (Exchanges(ContextKind::kAllGather)) {
    gradient = ExchangeContext(backward_, "keys gradient", gradient, CollectiveType::kReduceScatter,
                               AllKeySize() + AllValueSize());
  } else if (Exchanges(ContextKind::kAllToAll)) {
    gradient = ExchangeContext(backward_, "qkv gradient", gradient, CollectiveType::kAllToAll,
                               QuerySize() + KeySize() + ValueSize());
  }
  ProjectBackward(NormHeadsBackward(RotateBackward(gradient)));
}

TransformerAttention::In TransformerAttention::CoreForward(const In& in) {
  const int64_t element = forward_.element();
  const int64_t pairs = Pairs();
  if (plan_.attention == AttentionKind::kFused) {
    const int64_t products = QueryFlops(pairs) + ValueFlops(pairs);
    // The projection keeps the output, but with its tokens shared.
    const int64_t output = Exchanges(ContextKind::kAllToAll) ? OutputSize() : 0;
    return forward_.Add(
        {.name = "attention",
         .inputs = in,
         .flops = products + kSoftmaxFlops * pairs,
         .matrix_flops = products,
         .read = Bytes{QuerySize() * element + ReadKeyBytes() + ReadValueBytes()},
         .written = Bytes{OutputSize() * element},
         .kept = Bytes{(QuerySize() + KeySize() + ValueSize() + output) * element}});
  }
  In out = forward_.Add({.name = "attention scores",
                         .inputs = in,
                         .flops = QueryFlops(pairs),
                         .matrix_flops = QueryFlops(pairs),
                         .read = Bytes{QuerySize() * element + ReadKeyBytes()},
                         .written = Bytes{pairs * element},
                         .kept = Bytes{(QuerySize() + KeySize()) * element}});
  const bool again = plan_.recompute == Recompute::kSelective;
  out = forward_.Elementwise("attention softmax", out, pairs, kSoftmaxFlops,
                             {.read = pairs, .written = pairs, .kept = again ? 0 : pairs});
  return forward_.Add({.name = "attention values",
                       .inputs = out,
                       .flops = ValueFlops(pairs),
                       .matrix_flops = ValueFlops(pairs),
                       .read = Bytes{pairs * element + ReadValueBytes()},
                       .written = Bytes{OutputSize() * element},
                       .kept = Bytes{ValueSize() * element}});
}

TransformerAttention::In TransformerAttention::CoreBackward(const In& in) {
  const int64_t element = backward_.element();
  const int64_t pairs = Pairs();
  if (plan_.attention == AttentionKind::kFused) {
    // Recomputes the scores, then the gradients of values, of the softmax, of queries and of keys.
    const int64_t products = 3 * QueryFlops(pairs) + 2 * ValueFlops(pairs);
    return backward_.Add(
        {.name = "attention backward",
         .inputs = in,
         .flops =
             products + (kSoftmaxAgainFlops + kSoftmaxBackwardFlops) * pairs + 2 * OutputSize(),
         .matrix_flops = products,
         .read = Bytes{(QuerySize() + 2 * OutputSize() + AllKeySize() + AllValueSize()) * element},
         .written = Bytes{(QuerySize() + AllKeySize() + AllValueSize()) * element}});
  }
  In out = backward_.Add({.name = "attention values backward",
                          .inputs = in,
                          .flops = 2 * ValueFlops(pairs),
                          .matrix_flops = 2 * ValueFlops(pairs),
                          .read = Bytes{(OutputSize() + pairs + AllValueSize()) * element},
                          .written = Bytes{(pairs + AllValueSize()) * element}});
  out = backward_.Elementwise("attention softmax backward", out, pairs, kSoftmaxBackwardFlops,
                              {.read = 2 * pairs, .written = pairs});
  return backward_.Add({.name = "attention scores backward",
                        .inputs = out,
                        .flops = 2 * QueryFlops(pairs),
                        .matrix_flops = 2 * QueryFlops(pairs),
                        .read = Bytes{(pairs + QuerySize() + AllKeySize()) * element},
                        .written = Bytes{(QuerySize() + AllKeySize()) * element}});
}

// Blocks of keys and values rotate: while a rank computes on a block, it sends it to the next rank
// and receives another from the previous one.
TransformerAttention::In TransformerAttention::RingForward(const In& in) {
  const int64_t element = forward_.element();
  const int64_t keys = KeySize() + ValueSize();
  In block = in;  // work that provided the current block
  In here = in;   // the current block, and the output so far
  In out;
  for (int64_t i = 0; i < plan_.context; ++i) {
    In next;
    if (i + 1 < plan_.context) {
      forward_.Send(fmt::format("keys send {}", i), block, keys * element);
      next = forward_.Receive(fmt::format("keys receive {}", i), here, keys * element);
    }
    const int64_t pairs = BlockPairs(i);
    const int64_t products = QueryFlops(pairs) + ValueFlops(pairs);
    const int64_t before = i == 0 ? 0 : OutputSize();
    out = forward_.Add({.name = fmt::format("attention {}", i),
                        .inputs = here,
                        .flops = products + kSoftmaxFlops * pairs + kJoinFlops * before,
                        .matrix_flops = products,
                        .read = Bytes{(QuerySize() + keys + before) * element},
                        .written = Bytes{OutputSize() * element},
                        .kept = Bytes{i == 0 ? (QuerySize() + keys) * element : 0}});
    block = std::move(next);
    here = block;
    here.push_back(out.front());
  }
  return out;
}

// The gradients of a block rotate with it, each rank adds its part, and they finally reach its
// owner.
TransformerAttention::In TransformerAttention::RingBackward(const In& in) {
  const int64_t element = backward_.element();
  const int64_t keys = KeySize() + ValueSize();
  In block = in;
  In here = in;
  In gradient;  // of the block, from the previous rank
  In out;
  for (int64_t i = 0; i < plan_.context; ++i) {
    In next;
    if (i + 1 < plan_.context) {
      backward_.Send(fmt::format("keys send {} again", i), block, keys * element);
      next = backward_.Receive(fmt::format("keys receive {} again", i), here, keys * element);
    }
    const int64_t pairs = BlockPairs(i);
    const int64_t products = 3 * QueryFlops(pairs) + 2 * ValueFlops(pairs);
    // The output is needed for one number per row; the queries' gradient is accumulated.
    const int64_t flops = i == 0 ? 2 * OutputSize() : QuerySize();
    const int64_t read = i == 0 ? OutputSize() : QuerySize();
    out = backward_.Add(
        {.name = fmt::format("attention backward {}", i),
         .inputs = here,
         .flops = products + (kSoftmaxAgainFlops + kSoftmaxBackwardFlops) * pairs + flops,
         .matrix_flops = products,
         .read = Bytes{(QuerySize() + OutputSize() + keys + read) * element},
         .written = Bytes{(QuerySize() + keys) * element}});
    In sum = out;
    if (i > 0) {
      sum.push_back(gradient.front());
      sum = backward_.Elementwise(fmt::format("keys gradient sum {}", i), sum, keys, 1,
                                  {.read = 2 * keys, .written = keys});
    }
    backward_.Send(fmt::format("keys gradient send {}", i), sum, keys * element);
    gradient = backward_.Receive(fmt::format("keys gradient receive {}", i), sum, keys * element);
    block = std::move(next);
    here = block;
    here.push_back(out.front());
  }
  out.push_back(gradient.front());
  return out;
}

}  // namespace etude
