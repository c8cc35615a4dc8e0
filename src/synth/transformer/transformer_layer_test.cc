#include "src/synth/transformer/transformer_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/synth/layer_testing.h"

namespace etude {
namespace {

using testing_layer::SmallLlama;
using testing_layer::WorkOf;

int64_t MatrixFlops(const std::vector<LayerWork>& works) {
  int64_t sum = 0;
  for (const LayerWork& work : works) sum += work.matrix_flops;
  return sum;
}

int64_t Kept(const std::vector<LayerWork>& works) {
  int64_t sum = 0;
  for (const LayerWork& work : works) sum += work.kept.count;
  return sum;
}

// Bytes by collective and axis.
using Volumes = std::map<std::pair<CollectiveType, LayerAxis>, std::vector<int64_t>>;
Volumes VolumesOf(const std::vector<LayerWork>& works) {
  Volumes volumes;
  for (const LayerWork& work : works) {
    if (work.communicates()) volumes[{work.collective, work.axis}].push_back(work.bytes.count);
  }
  return volumes;
}

// Checks the invariants of passes: work waits for earlier work, nothing waits for gradients of
// weights, and there is an output.
void ExpectSound(const LayerPasses& passes) {
  for (const auto* works : {&passes.forward, &passes.backward}) {
    for (size_t i = 0; i < works->size(); ++i) {
      const LayerWork& work = (*works)[i];
      for (const size_t input : work.inputs) {
        ASSERT_LT(input, i) << work.name;
        EXPECT_FALSE((*works)[input].for_weights && !work.for_weights) << work.name;
      }
      EXPECT_EQ(work.communicates(), work.bytes.count > 0) << work.name;
      EXPECT_EQ(work.communicates(), work.read.count == 0) << work.name;
      EXPECT_GE(work.flops, work.matrix_flops) << work.name;
    }
  }
  for (const LayerWork& work : passes.forward) EXPECT_FALSE(work.for_weights) << work.name;
}

TransformerModel Gpt() {
  return {.layers = 4,
          .hidden = 256,
          .heads = 8,
          .kv_heads = 8,
          .head_size = 32,
          .ffn = 1024,
          .gated = false,
          .biases = true,
          .norm = NormKind::kLayerNorm,
          .vocabulary = 1000,
          .positions = 64,
          .sequence = 64};
}

// Queries of 96 values, keys and values of 64; 32 + 16 of a query and a key, 24 of a value.
TransformerModel Latent() {
  TransformerModel model = SmallLlama();
  model.kv_heads = 8;
  model.head_size = 48;
  model.latent = LatentAttention{
      .query_rank = 96, .kv_rank = 64, .nope_size = 32, .rope_size = 16, .value_size = 24};
  return model;
}

// F = 96 B s l h² (1 + s/(6h) + V/(16 l h)) with full recomputation: Narayanan et al. 2021,
// equation 3; 72 B s l h² (1 + s/(6h) + V/(12 l h)) without: Korthikanti et al. 2022, section 5.
TEST(TransformerLayer, FlopsOfAnIterationAsMegatronCountsThem) {
  const TransformerModel model = Gpt();
  const int64_t h = model.hidden;
  const int64_t s = model.sequence;
  const int64_t l = model.layers;
  const int64_t v = model.vocabulary;
  for (const int64_t b : {1, 3}) {
    for (const bool full : {false, true}) {
      const LayerPlan plan{.sequences = b,
                           .attention = AttentionKind::kUnfused,
                           .recompute = full ? Recompute::kFull : Recompute::kNone};
      ASSERT_TRUE(CheckLayerPlan(model, plan));
      const LayerPasses layer = TransformerLayer(model, plan, 0);
      const LayerPasses head = TransformerHead(model, plan);
      ExpectSound(layer);
      ExpectSound(head);
      const int64_t flops = l * (MatrixFlops(layer.forward) + MatrixFlops(layer.backward)) +
                            MatrixFlops(head.forward) + MatrixFlops(head.backward);
      const int64_t passes = full ? 4 : 3;  // 96 = 24 · 4, 72 = 24 · 3
      EXPECT_EQ(flops, passes * 24 * b * s * l * h * h + passes * 4 * b * s * s * l * h +
                           3 * 2 * b * s * h * v);
    }
  }
}

// s b h (34 + 5 a s/h) bytes in half precision: Korthikanti et al. 2022, equations 1 to 6, without
// dropout's data: byte masks of two s b h and one a s² b, and the softmax's output a second time.
TEST(TransformerLayer, ActivationsAsKorthikantiCountsThem) {
  const TransformerModel model = Gpt();
  const int64_t h = model.hidden;
  const int64_t s = model.sequence;
  const int64_t a = model.heads;
  const int64_t b = 2;
  const int64_t sbh = s * b * h;
  const int64_t pairs = a * s * s * b;
  const auto kept = [&](int64_t t, bool sequence_parallel, Recompute recompute) {
    const LayerPlan plan{.tensor = t,
                         .sequence_parallel = sequence_parallel,
                         .sequences = b,
                         .attention = AttentionKind::kUnfused,
                         .recompute = recompute};
    EXPECT_TRUE(CheckLayerPlan(model, plan));
    return Kept(TransformerLayer(model, plan, 0).forward);
  };
  EXPECT_EQ(kept(1, true, Recompute::kNone), 34 * sbh + 5 * pairs - 2 * sbh - 3 * pairs);
  for (const int64_t t : {2, 4}) {
    // Without sequence parallelism 10 of the 34 are not shared, among them both masks.
    EXPECT_EQ(kept(t, false, Recompute::kNone), (10 - 2) * sbh + 24 * sbh / t + 2 * pairs / t);
    EXPECT_EQ(kept(t, true, Recompute::kNone), 32 * sbh / t + 2 * pairs / t);
    EXPECT_EQ(kept(t, true, Recompute::kSelective), 32 * sbh / t);
    EXPECT_EQ(kept(t, false, Recompute::kFull), 2 * sbh);
  }
  // Ends of the network: 4 s b h/t (1 + v/h) of the final norm, the head and the loss.
  const LayerPlan plan{.tensor = 4, .sequences = b};
  EXPECT_EQ(Kept(TransformerHead(model, plan).forward),
            4 * sbh / 4 + 4 * s * b * model.vocabulary / 4);
}

// Selective recomputation adds 4 b s² h operations: Korthikanti et al. 2022, section 5.
TEST(TransformerLayer, SelectiveRecomputationComputesTheCoreAgain) {
  const TransformerModel model = Gpt();
  LayerPlan plan{.attention = AttentionKind::kUnfused};
  const int64_t before = MatrixFlops(TransformerLayer(model, plan, 0).backward);
  plan.recompute = Recompute::kSelective;
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  EXPECT_EQ(MatrixFlops(passes.backward) - before,
            4 * model.sequence * model.sequence * model.hidden);
  // Fused attention keeps none of it: there is nothing to recompute, and less is kept.
  plan.attention = AttentionKind::kFused;
  const LayerPasses fused = TransformerLayer(model, plan, 0);
  EXPECT_EQ(Kept(fused.forward), Kept(passes.forward));
  plan.recompute = Recompute::kNone;
  EXPECT_EQ(TransformerLayer(model, plan, 0).backward.size(), fused.backward.size());
}

// Tensor parallelism: two all-reduces of b s h forward and two backward; with sequence parallelism
// as many all-gathers and reduce-scatters, and two more all-gathers of inputs kept as a share.
// Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.
TEST(TransformerLayer, CommunicationOfTensorParallelRanks) {
  const TransformerModel model = SmallLlama();
  const int64_t b = 2;
  const int64_t t = 4;
  const int64_t full = b * model.sequence * model.hidden * 2;
  LayerPlan plan{.tensor = t, .sequence_parallel = false, .sequences = b};
  LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const Volumes reduced = {{{CollectiveType::kAllReduce, LayerAxis::kTensor}, {full, full}}};
  EXPECT_EQ(VolumesOf(passes.forward), reduced);
  EXPECT_EQ(VolumesOf(passes.backward), reduced);

  plan.sequence_parallel = true;
  passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  EXPECT_EQ(VolumesOf(passes.forward),
            (Volumes{{{CollectiveType::kAllGather, LayerAxis::kTensor}, {full / t, full / t}},
                     {{CollectiveType::kReduceScatter, LayerAxis::kTensor}, {full, full}}}));
  EXPECT_EQ(VolumesOf(passes.backward),
            (Volumes{{{CollectiveType::kAllGather, LayerAxis::kTensor},
                      {full / t, full / t, full / t, full / t}},
                     {{CollectiveType::kReduceScatter, LayerAxis::kTensor}, {full, full}}}));
  // Only gradients of weights wait for gathers of kept shares.
  EXPECT_EQ(std::ranges::count_if(
                passes.backward,
                [](const LayerWork& work) { return work.communicates() && work.for_weights; }),
            2);

  plan.tensor = 1;
  passes = TransformerLayer(model, plan, 0);
  EXPECT_TRUE(VolumesOf(passes.forward).empty());
  EXPECT_TRUE(VolumesOf(passes.backward).empty());
}

// Each context-parallel rank has a share of keys and values: Grattafiori et al. 2024, section
// 3.3.2.
TEST(TransformerLayer, CommunicationOfContextParallelRanks) {
  const TransformerModel model = SmallLlama();
  const LayerPlan plan{.tensor = 2, .context = 4, .sequences = 2};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const int64_t keys = 2 * (64 / 4) * (4 / 2) * 32 * 2;  // sequences, tokens, heads, size, bytes
  EXPECT_EQ(VolumesOf(passes.forward)[std::pair(CollectiveType::kAllGather, LayerAxis::kContext)],
            std::vector<int64_t>{2 * keys});
  Volumes backward = VolumesOf(passes.backward);
  EXPECT_EQ(backward[std::pair(CollectiveType::kAllGather, LayerAxis::kContext)],
            std::vector<int64_t>{2 * keys});
  EXPECT_EQ(backward[std::pair(CollectiveType::kReduceScatter, LayerAxis::kContext)],
            std::vector<int64_t>{4 * 2 * keys});
}

// Blocks of keys and values rotate c - 1 times forward and backward, and their gradients c times,
// back to their owner. Liu et al. 2023, arXiv 2310.01889, section 3.
TEST(TransformerLayer, MessagesOfRingAttention) {
  const TransformerModel model = SmallLlama();
  const LayerPlan plan{
      .tensor = 2, .context = 4, .context_kind = ContextKind::kRing, .sequences = 2};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const int64_t keys = 2 * (2 * (64 / 4) * (4 / 2) * 32 * 2);  // keys and values
  const auto bytes = [&](const std::vector<LayerWork>& works, LayerMessage message) {
    int64_t sum = 0;
    for (const LayerWork& work : works) {
      if (work.message != message) continue;
      EXPECT_EQ(work.bytes.count, keys);
      sum += work.bytes.count;
    }
    return sum;
  };
  for (const LayerMessage message : {LayerMessage::kToNext, LayerMessage::kFromPrevious}) {
    EXPECT_EQ(bytes(passes.forward, message), 3 * keys);
    EXPECT_EQ(bytes(passes.backward, message), (3 + 4) * keys);
  }
  // The second block, 16 queries of 2 sequences and 4 heads: its computation begins when it has
  // arrived and the first one is done; it is sent on when it has arrived.
  const auto index = [&](std::string_view name) {
    return static_cast<size_t>(&WorkOf(passes.forward, name) - passes.forward.data());
  };
  const LayerWork& second = WorkOf(passes.forward, "attention 1");
  EXPECT_EQ(second.inputs, (std::vector<size_t>{index("keys receive 0"), index("attention 0")}));
  EXPECT_EQ(WorkOf(passes.forward, "keys send 1").inputs,
            std::vector<size_t>{index("keys receive 0")});
  const int64_t pairs = 2 * 4 * (16 * 16 / 2);
  const int64_t queries = 2 * 16 * 4 * 32;
  EXPECT_EQ(second.flops, 4 * 32 * pairs + 6 * pairs + 3 * queries);
  EXPECT_EQ(second.read.count, 2 * queries * 2 + keys);
  EXPECT_EQ(second.kept.count, 0);
  EXPECT_EQ(WorkOf(passes.forward, "attention 0").matrix_flops, 4 * 32 * 2 * 4 * (16 * 17 / 2));
  EXPECT_EQ(WorkOf(passes.forward, "attention 0").kept.count, queries * 2 + keys);
  const LayerWork& back = WorkOf(passes.backward, "attention backward 1");
  EXPECT_EQ(back.matrix_flops, 10 * 32 * pairs);
  EXPECT_EQ(back.flops, back.matrix_flops + 8 * pairs + queries);
  EXPECT_EQ(back.read.count, 3 * queries * 2 + keys);
  EXPECT_EQ(WorkOf(passes.backward, "keys gradient sum 1").flops, keys / 2);
}

// With an early and a late piece each, every rank has equally many pairs with each block: counted
// one by one for a sequence of 24 over 3 ranks.
TEST(TransformerLayer, PairsOfRingAttention) {
  TransformerModel model = SmallLlama();
  model.sequence = 24;
  const LayerPlan plan{.context = 3, .context_kind = ContextKind::kRing};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  const auto owner = [](int64_t token) {
    const int64_t piece = token / 4;
    return std::min(piece, 5 - piece);
  };
  for (int64_t rank = 0; rank < 3; ++rank) {
    for (int64_t block = 0; block < 3; ++block) {
      int64_t pairs = 0;
      for (int64_t query = 0; query < 24; ++query) {
        for (int64_t key = 0; key <= query; ++key) {
          pairs += owner(query) == rank && owner(key) == (rank - block + 3) % 3 ? 1 : 0;
        }
      }
      EXPECT_EQ(WorkOf(passes.forward, "attention " + std::to_string(block)).matrix_flops,
                4 * 32 * 8 * pairs);
    }
  }
}

// All-to-alls of queries, keys and values and of the output: 4 N h / P elements on each of P ranks
// forward, and as many backward. Jacobs et al. 2023, arXiv 2309.14509, section 3.2.
TEST(TransformerLayer, AllToAllsOfContextParallelRanks) {
  const TransformerModel model = Gpt();
  const int64_t b = 3;
  LayerPlan plan{.context = 4, .context_kind = ContextKind::kAllToAll, .sequences = b};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const std::pair all_to_all(CollectiveType::kAllToAll, LayerAxis::kContext);
  LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const int64_t nh = b * 64 * 256 / 4 * 2;
  EXPECT_EQ(VolumesOf(passes.forward), (Volumes{{all_to_all, {3 * nh, nh}}}));
  EXPECT_EQ(VolumesOf(passes.backward), (Volumes{{all_to_all, {nh, 3 * nh}}}));
  // Two heads for whole sequences.
  const int64_t pairs = b * 2 * (64 * 65 / 2);
  EXPECT_EQ(WorkOf(passes.forward, "attention").matrix_flops, 4 * 32 * pairs);
  EXPECT_EQ(WorkOf(passes.forward, "attention").read.count, 3 * nh);
  EXPECT_EQ(WorkOf(passes.forward, "attention").kept.count, 4 * nh)
      << "the output by heads, beside that by tokens";
  EXPECT_EQ(WorkOf(passes.forward, "projection").kept.count, nh);
  // Fewer heads of keys and values are smaller to send, and are shared by tensor-parallel ranks,
  // too.
  plan = {.tensor = 2, .context = 2, .context_kind = ContextKind::kAllToAll};
  ASSERT_TRUE(CheckLayerPlan(SmallLlama(), plan));
  passes = TransformerLayer(SmallLlama(), plan, 0);
  ExpectSound(passes);
  EXPECT_EQ(VolumesOf(passes.forward)[all_to_all],
            (std::vector<int64_t>{32 * (4 + 2 + 2) * 32 * 2, 32 * 4 * 32 * 2}));
}

// A layer of two sequences by hand: b 2, s 64, h 256, 8 heads of 32 over 4, ffn 768; two
// tensor-parallel ranks with sequence parallelism; bfloat16, gradients in single precision.
TEST(TransformerLayer, ByHand) {
  const TransformerModel model = SmallLlama();
  const LayerPlan plan{.tensor = 2, .sequences = 2};
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  std::vector<std::string> names;
  for (const LayerWork& work : passes.forward) names.push_back(work.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "attention norm", "qkv all_gather", "qkv", "rotary", "attention", "projection",
                "projection reduce_scatter", "attention residual", "ffn norm", "up all_gather",
                "up", "activation", "down", "down reduce_scatter", "ffn residual"}));
  const LayerWork& norm = WorkOf(passes.forward, "attention norm");
  EXPECT_EQ(norm.flops, 4 * 64 * 256);
  EXPECT_EQ(norm.read.count, (64 * 256 + 256) * 2);
  const LayerWork& qkv = WorkOf(passes.forward, "qkv");
  EXPECT_EQ(qkv.flops, 2 * 128 * 256 * 256);  // 4 + 2 + 2 heads of 32
  EXPECT_EQ(qkv.read.count, (128 * 256 + 256 * 256) * 2);
  EXPECT_EQ(qkv.written.count, 128 * 256 * 2);
  EXPECT_EQ(qkv.kept.count, 64 * 256 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "rotary").flops, 3 * 128 * (4 + 2) * 32);
  const int64_t pairs = 2 * 4 * (64 * 65 / 2);
  const LayerWork& attention = WorkOf(passes.forward, "attention");
  EXPECT_EQ(attention.matrix_flops, 4 * 32 * pairs);
  EXPECT_EQ(attention.flops, 4 * 32 * pairs + 6 * pairs);
  EXPECT_EQ(attention.read.count, 128 * (4 + 2 + 2) * 32 * 2);
  EXPECT_EQ(attention.written.count, 128 * 4 * 32 * 2);
  EXPECT_EQ(attention.kept.count, attention.read.count);
  EXPECT_EQ(WorkOf(passes.forward, "projection").flops, 2 * 128 * 128 * 256);
  EXPECT_EQ(WorkOf(passes.forward, "attention residual").flops, 64 * 256);
  EXPECT_EQ(WorkOf(passes.forward, "up").flops, 2 * 128 * 256 * 768);
  EXPECT_EQ(WorkOf(passes.forward, "activation").flops, 5 * 128 * 384);
  EXPECT_EQ(WorkOf(passes.forward, "activation").kept.count, 128 * 768 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "down").flops, 2 * 128 * 384 * 256);

  EXPECT_EQ(WorkOf(passes.backward, "attention backward").matrix_flops, 10 * 32 * pairs);
  const LayerWork& input = WorkOf(passes.backward, "up input gradient");
  EXPECT_EQ(input.flops, 2 * 128 * 256 * 768);
  EXPECT_EQ(input.read.count, (128 * 768 + 256 * 768) * 2);
  const LayerWork& weight = WorkOf(passes.backward, "up weight gradient");
  EXPECT_TRUE(weight.for_weights);
  EXPECT_EQ(weight.flops, input.flops);
  EXPECT_EQ(weight.read.count, (128 * 256 + 128 * 768) * 2 + 256 * 768 * 4);
  EXPECT_EQ(weight.written.count, 256 * 768 * 4);
  EXPECT_EQ(weight.inputs.size(), 2u) << "the output's gradient and the gathered input";
}

// Latent attention of two sequences by hand, over two tensor-parallel ranks with sequence
// parallelism: 128 tokens, 64 of them between the matrices, 4 heads. DeepSeek-AI 2024, arXiv
// 2405.04434, equations 37 to 47.
TEST(TransformerLayer, LatentAttentionByHand) {
  const TransformerModel model = Latent();
  const LayerPlan plan{.tensor = 2, .sequences = 2};
  ASSERT_TRUE(CheckTransformer(model));
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  EXPECT_EQ(WorkOf(passes.forward, "query down").flops, 2 * 64 * 256 * 96);
  EXPECT_EQ(WorkOf(passes.forward, "query norm").flops, 4 * 64 * 96);
  EXPECT_EQ(WorkOf(passes.forward, "query all_gather").bytes.count, 64 * 96 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "query up").flops, 2 * 128 * 96 * (4 * 48));
  EXPECT_EQ(WorkOf(passes.forward, "kv down").flops, 2 * 64 * 256 * (64 + 16));
  EXPECT_EQ(WorkOf(passes.forward, "kv norm").flops, 4 * 64 * 64);
  EXPECT_EQ(WorkOf(passes.forward, "kv all_gather").bytes.count, 64 * (64 + 16) * 2);
  EXPECT_EQ(WorkOf(passes.forward, "kv up").flops, 2 * 128 * 64 * 4 * (32 + 24));
  EXPECT_EQ(WorkOf(passes.forward, "rotary").flops, 3 * 128 * (4 + 1) * 16);
  EXPECT_EQ(WorkOf(passes.forward, "rotary").read.count, 128 * (4 * 16 + 4 * 32 + 16) * 2);
  EXPECT_EQ(WorkOf(passes.forward, "rotary").written.count, 128 * (4 * 16 + 4 * 48) * 2);
  const int64_t pairs = 2 * 4 * (64 * 65 / 2);
  const LayerWork& attention = WorkOf(passes.forward, "attention");
  EXPECT_EQ(attention.matrix_flops, 2 * (48 + 24) * pairs);
  EXPECT_EQ(attention.read.count, 128 * 4 * (48 + 48 + 24) * 2);
  EXPECT_EQ(attention.written.count, 128 * 4 * 24 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "projection").flops, 2 * 128 * (4 * 24) * 256);
  const LayerWork& back = WorkOf(passes.backward, "attention backward");
  EXPECT_EQ(back.matrix_flops, 2 * (3 * 48 + 2 * 24) * pairs);
  EXPECT_EQ(back.read.count, 128 * 4 * (48 + 48 + 24 + 2 * 24) * 2);
  EXPECT_EQ(WorkOf(passes.backward, "rotary backward").flops, 3 * 128 * 5 * 16 + 128 * 3 * 16);
  EXPECT_EQ(WorkOf(passes.backward, "query gradient reduce_scatter").bytes.count, 128 * 96 * 2);
  EXPECT_EQ(WorkOf(passes.backward, "kv gradient reduce_scatter").bytes.count, 128 * 80 * 2);
  EXPECT_EQ(WorkOf(passes.backward, "query up input all_gather").bytes.count, 64 * 96 * 2);
  EXPECT_EQ(WorkOf(passes.backward, "kv up input all_gather").bytes.count, 64 * 64 * 2);
  EXPECT_EQ(WorkOf(passes.backward, "kv down weight gradient").written.count, 256 * 80 * 4);
  // Kept up to the projection: the hidden units twice, the narrow vectors before and after their
  // norms, and queries, keys, values and the output.
  int64_t kept = 0;
  for (const LayerWork& work : passes.forward) {
    kept += work.kept.count;
    if (work.name == "projection") break;
  }
  EXPECT_EQ(kept, 2 * (64 * (2 * 256 + 2 * 96 + 2 * 64) + 128 * 4 * (48 + 48 + 24 + 24)));
  // All ranks have all of the down-projections.
  int64_t elements = 0;
  for (const TransformerWeight& weight : LayerWeights(model, 0)) {
    elements += ElementsOnRank(weight, plan);
  }
  EXPECT_EQ(elements, 256 * 96 + 96 + 256 * 80 + 64 + 2 * 256 +
                          (96 * 8 * 48 + 64 * 8 * 56 + 8 * 24 * 256 + 3 * 256 * 768) / 2);
}

// Matrix products of tensor- and context-parallel ranks add up to the total, for any plan.
TEST(TransformerLayer, RanksShareTheWork) {
  int plans = 0;
  for (const TransformerModel& model : {SmallLlama(), Latent()})
    for (const AttentionKind attention : {AttentionKind::kFused, AttentionKind::kUnfused}) {
      const LayerPasses whole = TransformerLayer(model, {.attention = attention}, 0);
      for (const int64_t t : {1, 2, 4}) {
        for (const int64_t c : {1, 2, 4}) {
          for (const ContextKind kind :
               {ContextKind::kAllGather, ContextKind::kRing, ContextKind::kAllToAll}) {
            const LayerPlan plan{
                .tensor = t, .context = c, .context_kind = kind, .attention = attention};
            if (!CheckLayerPlan(model, plan)) continue;
            ++plans;
            const LayerPasses part = TransformerLayer(model, plan, 0);
            EXPECT_EQ(t * c * MatrixFlops(part.forward), MatrixFlops(whole.forward));
            EXPECT_EQ(t * c * MatrixFlops(part.backward), MatrixFlops(whole.backward));
          }
        }
      }
    }
  // All but unfused rings, and all-to-all if there are more ranks than heads of keys and values,
  // four and eight.
  EXPECT_EQ(plans, 2 * (2 * 9 * 3 - 6) - 2 * 3 - 2 * 1);
}

// Tokens go to their experts and back: two all-to-alls forward and two backward of the rank's
// tokens times top_k, by hidden units. Lepikhin et al. 2020, section 3.2.
TEST(TransformerLayer, Experts) {
  TransformerModel model = SmallLlama();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 512, .shared_ffn = 256};
  const int64_t b = 2;
  LayerPlan plan{.expert = 4, .sequences = b};
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const int64_t rows = b * 64 * 2;
  const std::pair all_to_all(CollectiveType::kAllToAll, LayerAxis::kExpert);
  const std::vector<int64_t> twice(2, rows * 256 * 2);
  EXPECT_EQ(VolumesOf(passes.forward), (Volumes{{all_to_all, twice}}));
  EXPECT_EQ(VolumesOf(passes.backward), (Volumes{{all_to_all, twice}}));
  // Two of eight experts, which receive rows of four ranks.
  EXPECT_EQ(WorkOf(passes.forward, "experts up").flops, 2 * rows * 256 * (2 * 512));
  EXPECT_EQ(WorkOf(passes.forward, "experts down").flops, 2 * rows * 512 * 256);
  EXPECT_EQ(WorkOf(passes.backward, "experts up weight gradient").written.count,
            2 * 256 * 2 * 512 * 4);
  EXPECT_EQ(WorkOf(passes.forward, "router").flops, 2 * b * 64 * 256 * 8);
  EXPECT_EQ(WorkOf(passes.forward, "shared up").flops, 2 * b * 64 * 256 * (2 * 256));
  EXPECT_EQ(WorkOf(passes.forward, "ffn residual").inputs.size(), 2u);

  // Room for a quarter more: ⌈1.25 · 128 · 2 / 8⌉ = 40 rows of each expert.
  model.experts->capacity_factor = 1.25;
  passes = TransformerLayer(model, plan, 0);
  EXPECT_EQ(WorkOf(passes.forward, "dispatch all_to_all").bytes.count, 8 * 40 * 256 * 2);
  model.experts->capacity_factor = 1;

  // Each tensor-parallel rank sends its share of the tokens; the ranks share each expert.
  plan.tensor = 4;
  passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  EXPECT_EQ(VolumesOf(passes.forward)[all_to_all], std::vector<int64_t>(2, rows / 4 * 256 * 2));
  EXPECT_EQ(WorkOf(passes.forward, "dispatch all_gather").bytes.count, rows / 4 * 256 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "combine reduce_scatter").bytes.count, rows * 256 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "experts up").flops, 2 * rows * 256 * (2 * 512 / 4));
  plan.recompute = Recompute::kFull;
  ExpectSound(TransformerLayer(model, plan, 0));
}

// 8 experts over 4 ranks; tokens prefer the first ones, and the last is unused.
TEST(TransformerLayer, ExpertsThatTokensPrefer) {
  TransformerModel model = SmallLlama();
  model.experts = ExpertsModel{.experts = 8, .top_k = 1, .ffn = 512};
  model.experts->shares = {8, 6, 5, 1, 1, 1, 1, 0};
  const LayerPlan plan{.tensor = 2, .expert = 4, .sequences = 2};
  ASSERT_TRUE(CheckTransformer(model));
  ASSERT_TRUE(CheckLayerPlan(model, plan));
  // A tensor-parallel rank has 64 of the tokens; 8/23, 6/23 … of 64: 22.3, 16.7, 13.9, 2.8 each.
  const std::vector<int64_t> rows = {22 + 16, 14 + 3, 3 + 3, 3 + 0};
  const std::pair all_to_all(CollectiveType::kAllToAll, LayerAxis::kExpert);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const LayerPasses passes = TransformerLayer(model, plan, 0, rank);
    ExpectSound(passes);
    const int64_t received = 4 * rows[static_cast<size_t>(rank)];
    // As many as the busiest rank receives.
    const std::vector<int64_t> twice(2, 4 * 38 * 256 * 2);
    EXPECT_EQ(VolumesOf(passes.forward)[all_to_all], twice);
    EXPECT_EQ(VolumesOf(passes.backward)[all_to_all], twice);
    EXPECT_EQ(WorkOf(passes.forward, "dispatch").written.count, 64 * 256 * 2);
    EXPECT_EQ(WorkOf(passes.forward, "dispatch all_gather").bytes.count, received * 256 * 2);
    EXPECT_EQ(WorkOf(passes.forward, "experts up").flops, 2 * (2 * received) * 256 * 512);
    EXPECT_EQ(WorkOf(passes.forward, "combine reduce_scatter").bytes.count, 2 * received * 256 * 2);
    EXPECT_EQ(WorkOf(passes.forward, "combine").flops, 2 * 64 * 256);
    EXPECT_EQ(WorkOf(passes.backward, "experts up input all_gather").bytes.count,
              received * 256 * 2);
    EXPECT_EQ(WorkOf(passes.backward, "experts up weight gradient").written.count,
              2 * 256 * 512 * 4);
  }
  // The last two are unused: there is nothing to share with the other tensor-parallel rank.
  model.experts->shares = {8, 6, 5, 1, 1, 1, 0, 0};
  const LayerPasses idle = TransformerLayer(model, plan, 0, 3);
  ExpectSound(idle);
  EXPECT_EQ(std::ranges::find(idle.forward, "experts up", &LayerWork::name), idle.forward.end());
  EXPECT_EQ(WorkOf(idle.backward, "experts up weight gradient").written.count, 2 * 256 * 512 * 4);
  EXPECT_EQ(std::ranges::find(idle.forward, "dispatch all_gather", &LayerWork::name),
            idle.forward.end());
}

TEST(TransformerLayer, EmbeddingIsALookup) {
  const TransformerModel model = Gpt();
  const LayerPlan plan{.tensor = 4, .sequences = 2};
  const LayerPasses passes = TransformerEmbedding(model, plan);
  ExpectSound(passes);
  const int64_t tokens = 128;
  EXPECT_EQ(MatrixFlops(passes.forward) + MatrixFlops(passes.backward), 0);
  EXPECT_EQ(WorkOf(passes.forward, "embedding lookup").read.count, tokens * (8 + 256 * 2));
  EXPECT_EQ(WorkOf(passes.forward, "embedding reduce_scatter").bytes.count, tokens * 256 * 2);
  EXPECT_EQ(WorkOf(passes.forward, "positions").flops, tokens / 4 * 256);
  EXPECT_EQ(WorkOf(passes.backward, "embedding gradient all_gather").bytes.count,
            tokens / 4 * 256 * 2);
  for (const LayerWork& work : passes.backward) EXPECT_TRUE(work.for_weights) << work.name;
}

// The vocabulary's 1,000 rows are shared; three values of each token are reduced. Shoeybi et al.
// 2019, section 3.
TEST(TransformerLayer, HeadSharesTheVocabulary) {
  TransformerModel model = Gpt();
  const LayerPlan plan{.tensor = 8, .sequences = 2};
  const LayerPasses passes = TransformerHead(model, plan);
  ExpectSound(passes);
  EXPECT_EQ(WorkOf(passes.forward, "head").flops, 2 * 128 * 256 * 125);
  EXPECT_EQ(VolumesOf(passes.forward)[std::pair(CollectiveType::kAllReduce, LayerAxis::kTensor)],
            std::vector<int64_t>(3, 128 * 4));
  EXPECT_EQ(WorkOf(passes.backward, "head input all_gather").bytes.count, 16 * 256 * 2);
  model.vocabulary = 1001;
  EXPECT_EQ(WorkOf(TransformerHead(model, plan).forward, "head").flops, 2 * 128 * 256 * 126)
      << "the widest share";
}

// (2 + 2 + K) bytes per parameter with K = 12, less with each stage: Rajbhandari et al. 2020,
// figure 1.
TEST(TransformerLayer, MemoryOfZeroStages) {
  TransformerModel model = Gpt();
  model.gradients = DType::kBFloat16;
  const int64_t parameters = 7'500'000'000;
  EXPECT_EQ(StatesOnRank(model, parameters, 0, 64).total().count, 16 * parameters);
  EXPECT_EQ(StatesOnRank(model, parameters, 1, 64).total().count,
            4 * parameters + 12 * parameters / 64);
  EXPECT_EQ(StatesOnRank(model, parameters, 2, 64).total().count,
            2 * parameters + 14 * parameters / 64);
  EXPECT_EQ(StatesOnRank(model, parameters, 3, 64).total().count, 16 * parameters / 64);
  const LayerWork step = OptimizerWork(model, parameters);
  EXPECT_EQ(step.read.count, (2 + 12) * parameters);
  EXPECT_EQ(step.written.count, (12 + 2) * parameters);
}

TEST(TransformerLayer, SplitsOfWeights) {
  TransformerModel model = SmallLlama();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 512};
  const LayerPlan plan{.tensor = 2, .expert = 4};
  int64_t elements = 0;
  for (const TransformerWeight& weight : LayerWeights(model, 0)) {
    elements += ElementsOnRank(weight, plan);
  }
  EXPECT_EQ(elements, 2 * 256 + 256 * (16 * 32) / 2 + 8 * 32 * 256 / 2 + 8 * 256 +
                          2 * (256 * 1024 + 512 * 256) / 2);
  EXPECT_EQ(ElementsOnRank(EmbeddingWeights(model)[0], {.tensor = 3}), 334 * 256);
}

TEST(TransformerLayer, PlansThatDoNotFit) {
  const auto error = [](const LayerPlan& plan) {
    const Fits status = CheckLayerPlan(SmallLlama(), plan);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(error({.tensor = 8}),
            "kv_heads: found 4, expected a multiple of the 8 tensor-parallel ranks");
  EXPECT_EQ(error({.context = 3}),
            "sequence: found 64, expected a multiple of the 6 pieces of the context-parallel "
            "ranks, two each");
  EXPECT_EQ(error({.context = 64}),
            "sequence: found 64, expected a multiple of the 128 pieces of the context-parallel "
            "ranks, two each");
  EXPECT_EQ(error({.tensor = 4, .context = 32}),
            "tokens of a micro-batch on a rank: found 2, expected a multiple of the 4 "
            "tensor-parallel ranks");
  EXPECT_EQ(error({.context = 8, .context_kind = ContextKind::kAllToAll}),
            "kv_heads: found 4, expected a multiple of the 8 tensor- times context-parallel ranks, "
            "which share heads by all-to-all");
  EXPECT_TRUE(error({.context = 4, .context_kind = ContextKind::kRing}).empty());
  EXPECT_EQ(
      error(
          {.context = 4, .context_kind = ContextKind::kRing, .attention = AttentionKind::kUnfused}),
      "ring: found unfused attention, expected fused attention");
  EXPECT_EQ(error({.expert = 2}), "found 2 expert-parallel ranks and no experts");
  EXPECT_EQ(error({.sequences = 0}), "sequences of a micro-batch: found 0, expected 1 to 16777216");
  EXPECT_TRUE(error({.sequences = 16'777'216}).empty());
  TransformerModel wide = SmallLlama();
  wide.hidden = 1 << 24;
  wide.sequence = 1 << 20;
  EXPECT_FALSE(CheckLayerPlan(wide, {.sequences = 1 << 20}));
  TransformerModel routed = SmallLlama();
  routed.experts = ExpertsModel{.experts = 6, .top_k = 2, .ffn = 512};
  EXPECT_FALSE(CheckLayerPlan(routed, {.expert = 4}));
  EXPECT_FALSE(CheckLayerPlan(routed, {.tensor = 2, .sequence_parallel = false}));
}

// Queries and keys of 4 and 2 heads of 32, and their two scales of 32; with and without offsets.
TEST(TransformerLayer, NormsOfHeadsAndWithoutOffsets) {
  TransformerModel model = SmallLlama();
  model.qk_norm = true;
  model.norm = NormKind::kLayerNormNoOffset;
  const LayerPlan plan{.tensor = 2, .sequences = 2};
  const LayerPasses passes = TransformerLayer(model, plan, 0);
  ExpectSound(passes);
  const int64_t size = 128 * (4 + 2) * 32;
  const LayerWork& norms = WorkOf(passes.forward, "head norms");
  EXPECT_EQ(norms.flops, 4 * size);
  EXPECT_EQ(norms.read.count, (size + 64) * 2);
  EXPECT_EQ(norms.kept.count, size * 2);
  const LayerWork& backward = WorkOf(passes.backward, "head norms backward");
  EXPECT_EQ(backward.flops, 9 * size);
  EXPECT_EQ(backward.read.count, (2 * size + 64) * 2 + 64 * 4);
  EXPECT_EQ(backward.written.count, size * 2 + 64 * 4);
  EXPECT_EQ(WorkOf(passes.forward, "attention norm").flops, 6 * 64 * 256);
  EXPECT_EQ(WorkOf(passes.forward, "attention norm").read.count, (64 * 256 + 256) * 2);
  EXPECT_EQ(WorkOf(passes.backward, "attention norm backward").flops, (12 + 1) * 64 * 256);
}

// The gradient of each weight comes from one work of backward.
TEST(TransformerLayer, GradientsOfAllWeights) {
  const auto given = [](const LayerPasses& passes) {
    std::vector<std::string> names;
    for (const LayerWork& work : passes.backward) {
      names.insert(names.end(), work.gives_gradients.begin(), work.gives_gradients.end());
    }
    std::ranges::sort(names);
    return names;
  };
  const auto names = [](const std::vector<TransformerWeight>& weights) {
    std::vector<std::string> all;
    for (const TransformerWeight& weight : weights) all.emplace_back(weight.name);
    std::ranges::sort(all);
    return all;
  };
  TransformerModel routed = SmallLlama();
  routed.experts = ExpertsModel{.experts = 4, .top_k = 2, .ffn = 512, .shared_ffn = 256};
  TransformerModel biased = SmallLlama();
  biased.biases = true;
  biased.positions = biased.sequence;
  TransformerModel straight = Latent();
  straight.latent->query_rank = 0;
  TransformerModel normed = SmallLlama();
  normed.qk_norm = true;
  for (const TransformerModel& model : {SmallLlama(), routed, biased, normed, Latent(), straight}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const LayerPlan plan{.recompute = recompute};
      EXPECT_EQ(given(TransformerLayer(model, plan, 0)), names(LayerWeights(model, 0)));
      EXPECT_EQ(given(TransformerEmbedding(model, plan)), names(EmbeddingWeights(model)));
      EXPECT_EQ(given(TransformerHead(model, plan)), names(HeadWeights(model)));
    }
  }
}

}  // namespace
}  // namespace etude
