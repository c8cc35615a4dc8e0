#include "src/synth/transformer/transformer_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/synth/job/sound_job.h"
#include "src/synth/pattern/astra_edges.h"

namespace etude {
namespace {

using testing_sound::ExpectFitForAstraSim;
using testing_sound::ExpectSound;

TransformerModel SmallModel() {
  return {.layers = 4,
          .hidden = 64,
          .heads = 8,
          .kv_heads = 4,
          .head_size = 8,
          .ffn = 192,
          .vocabulary = 320,
          .sequence = 32};
}

// Bytes by group and type over all stages, with each collective counted as often as in the program.
std::map<std::pair<ParallelGroup, CollectiveType>, int64_t> StepVolumes(const StepJob& job,
                                                                        int64_t stages) {
  std::map<std::pair<ParallelGroup, CollectiveType>, int64_t> volumes;
  for (int64_t stage = 0; stage < stages; ++stage) {
    for (const StepWork& work : job.program(stage)) {
      if (work.collective != CollectiveType::kUnknown) {
        volumes[{static_cast<ParallelGroup>(work.group), work.collective}] += work.bytes.count;
      }
    }
  }
  return volumes;
}

// Runs the places like the strictest simulator: work is done once all of its dependencies are, and
// a message once both sides are ready. Expects all work to complete.
void ExpectRunsToTheEnd(const StepJob& job, const std::string& what) {
  std::vector<std::vector<bool>> done;
  std::map<std::tuple<int64_t, std::optional<size_t>, int64_t>, size_t>
      receives;  // place, axis, tag
  size_t left = 0;
  size_t messages = 0;
  for (int64_t place = 0; place < job.places(); ++place) {
    const std::vector<StepWork>& works = job.program(place);
    done.emplace_back(works.size());
    left += works.size();
    for (size_t i = 0; i < works.size(); ++i) {
      if (works[i].partner == 0) continue;
      ++messages;
      if (works[i].sends) continue;
      EXPECT_TRUE(receives.emplace(std::tuple(place, works[i].axis, works[i].tag), i).second)
          << what;
    }
  }
  EXPECT_EQ(messages, 2 * receives.size()) << what;
  const auto is_ready = [&](int64_t place, const StepWork& work) {
    const std::vector<bool>& by_index = done[static_cast<size_t>(place)];
    return std::ranges::all_of(work.data, [&](size_t dep) { return by_index[dep]; }) &&
           std::ranges::all_of(work.control, [&](size_t dep) { return by_index[dep]; });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t place = 0; place < job.places(); ++place) {
      const std::vector<StepWork>& works = job.program(place);
      for (size_t i = 0; i < works.size(); ++i) {
        const StepWork& work = works[i];
        const bool receives_it = work.partner != 0 && !work.sends;
        if (done[static_cast<size_t>(place)][i] || receives_it || !is_ready(place, work)) continue;
        if (work.sends) {
          const int64_t peer = job.PartnerPlace(place, work);
          const auto receive = receives.find({peer, work.axis, work.tag});
          ASSERT_NE(receive, receives.end()) << what;
          const StepWork& other = job.program(peer)[receive->second];
          EXPECT_EQ(other.bytes, work.bytes) << what;
          EXPECT_EQ(other.partner, -work.partner) << what;
          EXPECT_EQ(job.PartnerPlace(peer, other), place) << what;
          if (!is_ready(peer, other)) continue;
          done[static_cast<size_t>(peer)][receive->second] = true;
          --left;
        }
        done[static_cast<size_t>(place)][i] = true;
        --left;
        moved = true;
      }
    }
  }
  EXPECT_EQ(left, 0u) << what;
}

// Replicas move 2 Ψ elements per step with stages 0 to 2 of ZeRO, 3 Ψ with stage 3: Rajbhandari et
// al. 2020, section 7. An all-reduce is a reduce-scatter and an all-gather.
TEST(TransformerJob, VolumesOfZeroStages) {
  TransformerModel model = SmallModel();
  model.gradients = DType::kBFloat16;
  const int64_t parameters = ParameterCount(model);
  const int64_t bytes = 2 * parameters;
  ASSERT_EQ(parameters % 4, 0);
  for (int64_t zero = 0; zero <= 3; ++zero) {
    TransformerPlan plan{.data = 4, .zero_stage = zero};
    const StepJob job = MakeTransformerJob(model, plan).value();
    auto volumes = StepVolumes(job, 1);
    const int64_t reduced = volumes[{ParallelGroup::kReplicas, CollectiveType::kAllReduce}];
    const int64_t scattered = volumes[{ParallelGroup::kReplicas, CollectiveType::kReduceScatter}];
    const int64_t gathered = 4 * volumes[{ParallelGroup::kReplicas, CollectiveType::kAllGather}];
    EXPECT_EQ(reduced, zero == 0 ? bytes : 0);
    EXPECT_EQ(scattered, zero == 0 ? 0 : bytes);
    EXPECT_EQ(gathered, zero == 0 ? 0 : zero == 3 ? 2 * bytes : bytes);
  }
  // Gradients once per step with stages 0 and 1, else for each micro-batch; likewise for gathered
  // weights.
  for (int64_t zero = 0; zero <= 3; ++zero) {
    TransformerPlan plan{.data = 4, .pipeline = {.micro_batches = 3}, .zero_stage = zero};
    auto volumes = StepVolumes(MakeTransformerJob(model, plan).value(), 1);
    const int64_t gradients = volumes[{ParallelGroup::kReplicas, CollectiveType::kAllReduce}] +
                              volumes[{ParallelGroup::kReplicas, CollectiveType::kReduceScatter}];
    EXPECT_EQ(gradients, zero < 2 ? bytes : 3 * bytes);
    EXPECT_EQ(4 * volumes[(std::pair(ParallelGroup::kReplicas, CollectiveType::kAllGather))],
              zero == 0   ? 0
              : zero == 3 ? 3 * 2 * bytes
                          : bytes);
  }
}

// Buckets are reduced while earlier layers still compute their gradients.
TEST(TransformerJob, BucketsOverlapWithBackward) {
  const TransformerModel model = SmallModel();
  const TransformerPlan plan{.data = 2, .bucket = Bytes{100'000}};
  const StepJob job = MakeTransformerJob(model, plan).value();
  const std::vector<StepWork>& works = job.program(0);
  size_t buckets = 0;
  size_t before_backward_ends = 0;
  size_t last_compute = 0;
  for (size_t i = 0; i + 1 < works.size(); ++i) {
    if (works[i].collective == CollectiveType::kUnknown && works[i].name != "optimizer") {
      last_compute = i;
    }
  }
  for (size_t i = 0; i < works.size(); ++i) {
    if (static_cast<ParallelGroup>(works[i].group) != ParallelGroup::kReplicas ||
        works[i].collective != CollectiveType::kAllReduce) {
      continue;
    }
    ++buckets;
    if (i < last_compute) ++before_backward_ends;
    for (size_t j = i + 1; j < last_compute; ++j) {
      if (works[j].collective != CollectiveType::kUnknown) continue;
      for (const size_t dep : works[j].data) EXPECT_NE(dep, i);
      for (const size_t dep : works[j].control) EXPECT_NE(dep, i);
    }
  }
  EXPECT_GE(buckets, 4u);
  EXPECT_GE(before_backward_ends, buckets - 1);
}

// Each weight closes its own bucket if a byte fills it, in the order in which gradients are
// computed, and the reduction waits only for that computation.
TEST(TransformerJob, WeightsFillBuckets) {
  TransformerModel model = SmallModel();
  model.layers = 1;
  model.gradients = DType::kBFloat16;
  const TransformerPlan plan{.data = 2, .bucket = Bytes{1}};
  const StepJob job = MakeTransformerJob(model, plan).value();
  const std::vector<StepWork>& works = job.program(0);
  std::vector<std::pair<std::string, int64_t>> reduced;  // preceding work, elements
  for (const StepWork& work : works) {
    if (static_cast<ParallelGroup>(work.group) != ParallelGroup::kReplicas ||
        work.collective != CollectiveType::kAllReduce) {
      continue;
    }
    ASSERT_EQ(work.data.size(), 1u);
    reduced.emplace_back(works[work.data[0]].name, work.bytes.count / 2);
  }
  const std::vector<std::pair<std::string, int64_t>> expected = {
      {"head head weight gradient #0", 320 * 64},
      {"head final norm backward #0", 64},
      {"layer 0 down weight gradient #0", 192 * 64},
      {"layer 0 up weight gradient #0", 2 * 192 * 64},
      {"layer 0 ffn norm backward #0", 64},
      {"layer 0 projection weight gradient #0", 64 * 64},
      {"layer 0 qkv weight gradient #0", (8 + 2 * 4) * 8 * 64},
      {"layer 0 attention norm backward #0", 64},
      {"embedding embedding weight gradient #0", 320 * 64}};
  EXPECT_EQ(reduced, expected);
  // A bias's gradient precedes its matrix's, and LayerNorm has two weights.
  TransformerModel older = model;
  older.biases = true;
  older.norm = NormKind::kLayerNorm;
  older.gated = false;
  older.kv_heads = older.heads;
  std::vector<int64_t> elements;
  const StepJob older_job = MakeTransformerJob(older, plan).value();
  for (const StepWork& work : older_job.program(0)) {
    if (work.collective == CollectiveType::kAllReduce) elements.push_back(work.bytes.count / 2);
  }
  EXPECT_EQ(elements, (std::vector<int64_t>{320 * 64, 64, 64, 64, 192 * 64, 192, 192 * 64, 64, 64,
                                            64, 64 * 64, 3 * 64, 3 * 64 * 64, 64, 64, 320 * 64}));
  TransformerPlan wider = plan;
  wider.bucket = Bytes{2 * (192 * 64 + 1)};
  size_t buckets = 0;
  const StepJob fewer = MakeTransformerJob(model, wider).value();
  for (const StepWork& work : fewer.program(0)) {
    buckets += work.collective == CollectiveType::kAllReduce ? 1 : 0;
  }
  EXPECT_EQ(buckets, 5u) << "head; final norm, down; up; ffn norm, projection, qkv; the rest";
}

// "+layer 0", "-head": gathered weights and reduced gradients, in order, with their units.
std::vector<std::string> ReplicaCalls(const TransformerModel& model, const TransformerPlan& plan) {
  const StepJob job = MakeTransformerJob(model, plan).value();
  std::vector<std::string> calls;
  for (const StepWork& work : job.program(0)) {
    if (work.collective == CollectiveType::kUnknown) continue;
    const std::string& of = work.collective == CollectiveType::kAllGather
                                ? work.name
                                : job.program(0)[work.data[0]].name;
    calls.push_back(std::string(work.collective == CollectiveType::kAllGather ? "+" : "-") +
                    of.substr(0, of.starts_with("layer") ? 7 : of.find(' ')));
  }
  return calls;
}

// The weights of the next layer of backward are requested before the gradients of this one are
// reduced, which would delay them, as in PyTorch's fully_shard (tests/record/test_generated.py).
TEST(TransformerJob, SharedWeightsAreGatheredBeforeGradientsAreReduced) {
  TransformerModel model = SmallModel();
  model.layers = 2;
  TransformerPlan plan{.data = 2, .zero_stage = 3};
  EXPECT_EQ(ReplicaCalls(model, plan),
            (std::vector<std::string>{"+embedding", "+layer 0", "+layer 1", "+head", "+head",
                                      "+layer 1", "-head", "+layer 0", "-layer 1", "+embedding",
                                      "-layer 0", "-embedding"}));
  // The next layer's weights do not wait for this one.
  const StepJob job = MakeTransformerJob(model, plan).value();
  const std::vector<StepWork>& works = job.program(0);
  for (size_t i = 0; i < works.size(); ++i) {
    if (works[i].name != "layer 0 weights all_gather #0" || i < works.size() / 2) continue;
    ASSERT_EQ(works[i].control.size(), 2u);
    EXPECT_EQ(works[works[i].control[0]].name, "head final norm backward #0");
    EXPECT_EQ(works[works[i].control[1]].collective, CollectiveType::kReduceScatter);
  }
  // Kept from forward to backward, the ends are gathered once and reduced last.
  plan.keep_ends = true;
  const std::vector<std::string> kept = {"+ends",    "+layer 0", "+layer 1", "+layer 1",
                                         "+layer 0", "-layer 1", "-layer 0", "-head"};
  EXPECT_EQ(ReplicaCalls(model, plan), kept);
  // The head multiplies with the embedding that it is tied to.
  plan.keep_ends = false;
  model.tied = true;
  EXPECT_EQ(ReplicaCalls(model, plan), kept);
  plan.pipeline.micro_batches = 2;
  std::vector<std::string> twice = kept;
  twice.insert(twice.end(), kept.begin(), kept.end());
  EXPECT_EQ(ReplicaCalls(model, plan), twice);
}

// Gathered for the ends: embedding, final norm and head, (2 · 320 · 64 + 64) / 4 elements of two
// bytes, once.
TEST(TransformerJob, KeptEndsAreOneUnit) {
  const TransformerModel model = SmallModel();
  const TransformerPlan plan{.data = 4, .zero_stage = 3, .keep_ends = true};
  const StepJob job = MakeTransformerJob(model, plan).value();
  int64_t gathered = 0;
  int64_t updated = 0;
  for (const StepWork& work : job.program(0)) {
    if (work.name == "ends weights all_gather #0") gathered += work.bytes.count;
    if (work.name == "optimizer") updated = work.flops / 14;
  }
  EXPECT_EQ(gathered, 2 * (2 * 320 * 64 + 64) / 4);
  EXPECT_EQ(updated, ParameterCount(model) / 4);
}

// A tied embedding on two stages, of 320 · 64 weights: both stages sum the replicas' shares of its
// gradient once, a third of 20,480 elements of four bytes, after the reduction of each micro-batch.
TEST(TransformerJob, ATiedEmbeddingOfTwoStagesIsShared) {
  TransformerModel model = SmallModel();
  model.tied = true;
  constexpr int64_t kShare = (320 * 64 + 2) / 3;
  for (const int64_t zero : {2, 3}) {
    for (const bool keep_ends : {false, true}) {
      const TransformerPlan plan{.data = 3,
                                 .pipeline = {.stages = 2, .micro_batches = 2},
                                 .zero_stage = zero,
                                 .keep_ends = keep_ends};
      const StepJob job = MakeTransformerJob(model, plan).value();
      ExpectRunsToTheEnd(job, "tied");
      for (int64_t stage = 0; stage < 2; ++stage) {
        std::vector<int64_t> reduced;
        std::vector<int64_t> summed;
        int64_t gathered = 0;
        const std::vector<StepWork>& works = job.program(stage);
        for (const StepWork& work : works) {
          if (work.name == "embedding gradients reduce_scatter") {
            reduced.push_back(work.bytes.count);
          }
          if (work.name == "embedding gradient all_reduce") {
            summed.push_back(work.bytes.count);
            // After the last reduction; the optimizer waits for it.
            EXPECT_EQ(works[work.data.back()].collective, CollectiveType::kReduceScatter);
            EXPECT_EQ((&work + 1)->data,
                      (std::vector<size_t>{static_cast<size_t>(&work - works.data())}));
          }
          const std::string end = stage == 0 ? "embedding" : "head";
          if (work.name.starts_with((keep_ends ? "ends" : end) + " weights all_gather")) {
            gathered += work.bytes.count;
          }
        }
        EXPECT_EQ(reduced, (std::vector<int64_t>{kShare * 3 * 4, kShare * 3 * 4}));
        EXPECT_EQ(summed, (std::vector<int64_t>{kShare * 4}));
        // The last stage also has the final norm's 64 weights. Forward and backward of two
        // micro-batches; kept ends are gathered once in each.
        const int64_t end = stage == 0 ? kShare : (320 * 64 + 64 + 2) / 3;
        EXPECT_EQ(gathered, zero == 3 ? end * 2 * (keep_ends ? 2 : 4) : 0);
      }
    }
  }
}

// DistributedDataParallel's first bucket is smaller, so that the first all-reduce is early.
TEST(TransformerJob, TheFirstBucketMayBeSmaller) {
  TransformerModel model = SmallModel();
  model.layers = 1;
  model.gradients = DType::kBFloat16;
  const TransformerPlan plan{.data = 2, .bucket = Bytes{1 << 20}, .first_bucket = Bytes{1}};
  const StepJob job = MakeTransformerJob(model, plan).value();
  std::vector<int64_t> elements;
  for (const StepWork& work : job.program(0)) {
    if (work.collective != CollectiveType::kUnknown) elements.push_back(work.bytes.count / 2);
  }
  EXPECT_EQ(elements, (std::vector<int64_t>{320 * 64, ParameterCount(model) - 320 * 64}));
}

// Each boundary between stages, or chunks, is crossed by each micro-batch forward and backward.
TEST(TransformerJob, MessagesOfAPipeline) {
  TransformerModel model = SmallModel();
  model.layers = 8;
  for (const bool sequence_parallel : {false, true}) {
    TransformerPlan plan{
        .layer = {.tensor = 2, .sequence_parallel = sequence_parallel, .sequences = 3},
        .pipeline = {.schedule = PipelineSchedule::kInterleaved,
                     .stages = 2,
                     .micro_batches = 4,
                     .chunks = 4}};
    const StepJob job = MakeTransformerJob(model, plan).value();
    int64_t messages = 0;
    for (int64_t stage = 0; stage < 2; ++stage) {
      for (const StepWork& work : job.program(stage)) {
        if (work.partner == 0) continue;
        ++messages;
        EXPECT_EQ(work.bytes.count, 3 * 32 * 64 * 2 / (sequence_parallel ? 2 : 1));
      }
    }
    EXPECT_EQ(messages, 2 * 2 * 4 * (2 * 4 - 1)) << "sends and receives";
  }
}

// Keys and values rotate among the context-parallel ranks of each stage: 4 ranks, each sends 3
// blocks forward, 3 blocks and 4 times gradients backward, for each of 2 layers and 3
// micro-batches.
TEST(TransformerJob, MessagesOfARing) {
  TransformerModel model = SmallModel();
  TransformerPlan plan{.layer = {.tensor = 2, .context = 4, .context_kind = ContextKind::kRing},
                       .pipeline = {.stages = 2, .micro_batches = 3}};
  const StepJob job = MakeTransformerJob(model, plan).value();
  ExpectRunsToTheEnd(job, "ring");
  for (int64_t stage = 0; stage < 2; ++stage) {
    int64_t sends = 0;
    for (const StepWork& work : job.program(stage)) {
      if (!work.axis || !work.sends) continue;
      ++sends;
      // 8 tokens of 2 kv heads of 8, keys and values, bfloat16.
      EXPECT_EQ(work.bytes.count, 8 * 2 * 8 * 2 * 2);
    }
    EXPECT_EQ(sends, 3 * 2 * (3 + 3 + 4));
  }
  // Rank 13 of tp 2 × cp 4 × pp 2 is the third of its ring: 9, 11, 13, 15.
  size_t of_the_ring = 0;
  for (const CommCall& call : ReadCommLog(job.TraceOf(13).value(), 13).calls) {
    if (!call.peer || *call.peer < 8) continue;
    EXPECT_EQ(*call.peer, call.kind == NodeKind::kSend ? 15 : 11);
    ++of_the_ring;
  }
  EXPECT_EQ(of_the_ring, 2u * 3 * 2 * 10);
}

// Ranks with different experts have different programs, but matching communications: 4
// expert-parallel ranks of 2 stages are 8 programs, each of tensor- and data-parallel ranks.
TEST(TransformerJob, ExpertsThatTokensPrefer) {
  TransformerModel model = SmallModel();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 64, .imbalance = 1};
  const TransformerPlan plan{.layer = {.tensor = 2, .expert = 4},
                             .data = 8,
                             .pipeline = {.stages = 2, .micro_batches = 2},
                             .zero_stage = 1};
  const StepJob job = MakeTransformerJob(model, plan).value();
  EXPECT_EQ(job.ranks(), 32);
  EXPECT_EQ(job.places(), 8);
  ExpectRunsToTheEnd(job, "uneven");
  ExpectSound(job, "uneven");
  EXPECT_EQ(job.AsJob().value().classes.size(), 8u);
  // Four ranks and their tensor-parallel partners compute all rows of a layer: 16 tokens of each of
  // 8 ranks, 2 experts each.
  int64_t rows = 0;
  int64_t most = 0;
  std::vector<int64_t> exchanged;
  for (int64_t place = 0; place < 4; ++place) {
    for (const StepWork& work : job.program(place)) {
      if (work.name == "layer 0 experts down #0") {
        rows += work.flops / (2 * 32 * 64);
        most = std::max(most, work.flops / (2 * 32 * 64));
      }
      if (work.name == "layer 0 dispatch all_to_all #0") exchanged.push_back(work.bytes.count);
    }
  }
  EXPECT_EQ(rows, 2 * 4 * 16 * 2);
  EXPECT_GT(most, rows / 4);
  EXPECT_EQ(exchanged, std::vector<int64_t>(4, most / 2 * 64 * 2));
  // Without imbalance all ranks of a stage do the same.
  model.experts->imbalance = 0;
  EXPECT_EQ(MakeTransformerJob(model, plan).value().places(), 2);
}

// Scales of heads are the same on all tensor-parallel ranks, each of which has other heads.
TEST(TransformerJob, GradientsOfHeadNormsAreSummed) {
  TransformerModel model = SmallModel();
  model.qk_norm = true;
  for (const bool sequence_parallel : {false, true}) {
    const TransformerPlan plan{.layer = {.tensor = 2, .sequence_parallel = sequence_parallel}};
    const StepJob job = MakeTransformerJob(model, plan).value();
    int64_t layers = 0;
    for (const StepWork& work : job.program(0)) {
      if (!work.name.starts_with("layer") || !work.name.ends_with("common gradients all_reduce")) {
        continue;
      }
      ++layers;
      EXPECT_EQ(work.bytes.count, (2 * 8 + (sequence_parallel ? 2 * 64 : 0)) * 4);
    }
    EXPECT_EQ(layers, 4);
  }
}

// All parameters are updated once, for any plan.
TEST(TransformerJob, EveryParameterIsUpdatedOnce) {
  TransformerModel model = SmallModel();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 64, .dense_layers = 1};
  for (int64_t zero = 0; zero <= 3; ++zero) {
    for (const int64_t stages : {1, 2}) {
      const TransformerPlan plan{.layer = {.expert = 2},
                                 .data = 4,
                                 .pipeline = {.stages = stages, .micro_batches = 2},
                                 .zero_stage = zero};
      const StepJob job = MakeTransformerJob(model, plan).value();
      int64_t updated = 0;
      for (int64_t stage = 0; stage < stages; ++stage) {
        for (const StepWork& work : job.program(stage)) {
          if (work.name == "optimizer") updated += work.flops / 14;
        }
      }
      int64_t experts = 0;
      for (int64_t layer = 0; layer < model.layers; ++layer) {
        for (const TransformerWeight& weight : LayerWeights(model, layer)) {
          if (weight.split == WeightSplit::kExperts) experts += weight.elements();
        }
      }
      const int64_t others = ParameterCount(model) - experts;
      EXPECT_EQ(updated, zero == 0 ? others + experts / 2 : others / 4 + experts / 4);
    }
  }
}

// The optimizer waits for the norm of all gradients: 2 operations and one read of each on the rank,
// and a number of 4 bytes from all ranks with other gradients.
TEST(TransformerJob, ClippingByTheGlobalNorm) {
  TransformerModel model = SmallModel();
  model.experts = ExpertsModel{.experts = 8, .top_k = 2, .ffn = 64};
  for (const int64_t zero : {0, 1, 3}) {
    TransformerPlan plan{.layer = {.tensor = 2, .expert = 2},
                         .data = 4,
                         .pipeline = {.stages = 2},
                         .zero_stage = zero};
    const StepJob plain = MakeTransformerJob(model, plan).value();
    plan.clips = true;
    const StepJob job = MakeTransformerJob(model, plan).value();
    for (const int64_t stage : {0, 1}) {
      const std::vector<StepWork>& works = job.program(stage);
      const auto index = [&](std::string_view name) {
        const auto found = std::ranges::find(works, name, &StepWork::name);
        EXPECT_NE(found, works.end()) << name;
        return static_cast<size_t>(found - works.begin());
      };
      const StepWork& norm = works[index("gradient norm")];
      const StepWork& sum = works[index("gradient norm all_reduce")];
      const StepWork& update = works[index("optimizer")];
      const int64_t parameters = update.flops / 15;
      const std::vector<StepWork>& before = plain.program(stage);
      EXPECT_EQ(std::ranges::find(before, "optimizer", &StepWork::name)->flops, 14 * parameters);
      EXPECT_EQ(norm.flops, 2 * parameters);
      EXPECT_EQ(norm.memory.count, 4 * parameters + 4);
      EXPECT_EQ(sum.bytes.count, 4);
      EXPECT_EQ(sum.data, std::vector<size_t>{index("gradient norm")});
      EXPECT_EQ(update.data, std::vector<size_t>{index("gradient norm all_reduce")});
    }
    // Of 16 ranks, groups of two replicas with the same gradients, or all with ZeRO.
    const auto groups = job.Groups();
    const std::vector<int64_t> last = groups.rbegin()->second;
    EXPECT_EQ(last.size(), zero == 0 ? 8u : 16u);
    if (zero == 0) {
      EXPECT_EQ(last, (std::vector<int64_t>{4, 5, 6, 7, 12, 13, 14, 15}));
    }
  }
  // A single rank: no sum.
  const StepJob alone = MakeTransformerJob(SmallModel(), {.clips = true}).value();
  EXPECT_TRUE(alone.Groups().empty());
}

TEST(TransformerJob, GroupsAndRanks) {
  TransformerModel model = SmallModel();
  model.tied = true;
  model.experts = ExpertsModel{.experts = 4, .top_k = 1, .ffn = 64};
  const TransformerPlan plan{
      .layer = {.tensor = 2, .expert = 2}, .data = 4, .pipeline = {.stages = 2}};
  const StepJob job = MakeTransformerJob(model, plan).value();
  EXPECT_EQ(job.ranks(), 16);
  const std::map<int64_t, std::vector<int64_t>> groups = job.Groups();
  // 8 of tensor, 8 of expert, 4 of replicas, 8 of an expert's replicas, 8 of the ends.
  ASSERT_EQ(groups.size(), 36u);
  EXPECT_EQ(groups.at(1), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(groups.at(8), (std::vector<int64_t>{14, 15}));
  EXPECT_EQ(groups.at(9), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(groups.at(17), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(groups.at(21), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(groups.at(29), (std::vector<int64_t>{0, 8}));
  std::map<std::string, std::vector<int64_t>> users;
  for (int64_t rank = 0; rank < job.ranks(); ++rank) {
    for (const CommLog::Group& group : ReadCommLog(job.TraceOf(rank).value(), rank).groups) {
      users[group.name].push_back(rank);
    }
  }
  for (const auto& [number, members] : groups) EXPECT_EQ(users[std::to_string(number)], members);
}

// Models and plans of all kinds, most of which are invalid.
class RandomPlans {
 public:
  int64_t OneOf(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }

  TransformerModel Model() {
    TransformerModel model = SmallModel();
    model.layers = OneOf({1, 2, 3, 4, 5});
    model.gated = random_() % 2 == 0;
    model.tied = random_() % 2 == 0;
    model.qk_norm = random_() % 2 == 0;
    model.positions = OneOf({0, 32});
    if (random_() % 3 == 0) {
      model.experts = ExpertsModel{.experts = OneOf({2, 4}),
                                   .top_k = OneOf({1, 2}),
                                   .ffn = 64,
                                   .shared_ffn = OneOf({0, 32}),
                                   .dense_layers = OneOf({0, 1}),
                                   .imbalance = static_cast<double>(OneOf({0, 1, 3})) / 2};
    } else {
      model.biases = random_() % 2 == 0;
    }
    if (random_() % 4 == 0 && !model.biases && !model.qk_norm && model.positions == 0) {
      model.kv_heads = model.heads;
      model.latent = LatentAttention{.query_rank = OneOf({0, 24}),
                                     .kv_rank = 16,
                                     .nope_size = 6,
                                     .rope_size = 2,
                                     .value_size = OneOf({6, 8})};
    }
    return model;
  }
  TransformerPlan Training() {
    TransformerPlan plan = Spread();
    plan.layer.recompute = static_cast<Recompute>(random_() % 3);
    plan.pipeline.schedule = static_cast<PipelineSchedule>(random_() % 4);
    plan.pipeline.chunks = OneOf({1, 2});
    plan.zero_stage = OneOf({0, 1, 2, 3});
    plan.bucket = Bytes{OneOf({1, 50'000, 1 << 25})};
    plan.clips = random_() % 2 == 0;
    plan.keep_ends = random_() % 2 == 0;
    if (random_() % 2 == 0) plan.first_bucket = Bytes{20'000};
    return plan;
  }
  TransformerPlan Inference() {
    TransformerPlan plan = Spread();
    plan.phase = random_() % 2 == 0 ? ModelPhase::kPrefill : ModelPhase::kDecode;
    plan.cached = OneOf({0, 0, 7, 30});
    plan.tokens = OneOf({1, 2, 3});
    if (random_() % 2 == 0) plan.cache_type = DType::kFloat8E5M2;
    return plan;
  }

 private:
  TransformerPlan Spread() {
    TransformerPlan plan;
    plan.layer = {.tensor = OneOf({1, 2, 4}),
                  .sequence_parallel = random_() % 4 != 0,
                  .context = OneOf({1, 1, 2, 4}),
                  .context_kind = static_cast<ContextKind>(random_() % 3),
                  .expert = OneOf({1, 2}),
                  .sequences = OneOf({1, 2}),
                  .attention = static_cast<AttentionKind>(random_() % 2)};
    plan.data = OneOf({1, 2, 4});
    plan.pipeline = {.stages = OneOf({1, 2, 3}), .micro_batches = OneOf({1, 2, 4, 6})};
    return plan;
  }

  std::mt19937 random_{13};
};

// Checks that `count` valid plans are sound and run to the end.
void ExpectPlansAreSound(TransformerPlan (RandomPlans::*next)(), int count) {
  RandomPlans random;
  int made = 0;
  while (made < count) {
    const TransformerModel model = random.Model();
    const TransformerPlan plan = (random.*next)();
    if (plan.ranks() > 16 || !CheckTransformerPlan(model, plan)) continue;
    const auto job = MakeTransformerJob(model, plan);
    ASSERT_TRUE(job);
    const std::string what = "plan " + std::to_string(made);
    ExpectRunsToTheEnd(*job, what);
    // Reading a trace of each rank takes most of the time.
    if (made % 20 == 0) ExpectSound(*job, what);
    if (made % 50 == 0) ExpectFitForAstraSim(*job, what);
    if (testing::Test::HasFatalFailure()) return;
    ++made;
  }
}

TEST(TransformerJob, RandomPlansAreSound) { ExpectPlansAreSound(&RandomPlans::Training, 1000); }

TEST(TransformerJob, RandomInferenceIsSound) { ExpectPlansAreSound(&RandomPlans::Inference, 60); }

TEST(TransformerJob, EdgesOfAstraSim) {
  TransformerModel model = SmallModel();
  model.layers = 1;
  const auto edges = [&](const TransformerPlan& plan) {
    return FindAstraEdges(MakeTransformerJob(model, plan).value());
  };
  // The embedding of 32 tokens: 8 bytes to find each of them, 128 to read and 128 to write.
  EXPECT_EQ(edges({}).small_firsts, 1u);
  EXPECT_EQ(edges({.layer = {.sequences = 8}}).small_firsts, 0u);
  EXPECT_EQ(edges({.data = 4}).small_firsts, 4u);
  // The smallest are the 20,480 weights of the embedding, 10,240 bytes on each of four ranks.
  EXPECT_EQ(edges({.data = 4, .zero_stage = 3}).small_gathers, 0u);
  EXPECT_EQ(edges({.data = 4, .zero_stage = 3}).small_firsts, 0u);
  // 16 tokens of keys and values of 32 units in bfloat16: 2,048 bytes, an eighth of it with 8
  // ranks.
  EXPECT_EQ(edges({.layer = {.context = 2}}).small_gathers, 0u);
  EXPECT_EQ(edges({.layer = {.context = 8}}).small_gathers, 8u * 2);
}

TEST(TransformerJob, PlansThatDoNotFit) {
  const auto error = [](const TransformerModel& model, const TransformerPlan& plan) {
    const auto job = MakeTransformerJob(model, plan);
    return job ? "" : job.error().message;
  };
  TransformerModel model = SmallModel();
  EXPECT_EQ(error(model, {.pipeline = {.stages = 5}}),
            "layers: found 4, expected one or more for each of 5 stages and 1 chunks on each");
  EXPECT_EQ(error(model, {.zero_stage = 4}), "ZeRO stage: found 4, expected 0 to 3");
  model.experts = ExpertsModel{.experts = 4, .top_k = 1, .ffn = 64};
  EXPECT_EQ(error(model, {.layer = {.expert = 4}, .data = 2}),
            "data-parallel ranks: found 2, expected a multiple of the 4 expert-parallel ranks");
  model = SmallModel();
  EXPECT_FALSE(error(model, {.pipeline = {.micro_batches = 30'000'000}}).empty());
  EXPECT_FALSE(error(model, {.data = 0}).empty());
  EXPECT_EQ(error(model, {.first_bucket = Bytes{0}}),
            "bucket: found 0 bytes, expected one or more");
  model.layers = 0;
  EXPECT_FALSE(error(model, {}).empty());
}

}  // namespace
}  // namespace etude
