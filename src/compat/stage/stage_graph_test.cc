#include "src/compat/stage/stage_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/compat/stage/stage_file.h"

namespace etude::stage {
namespace {

using enum Symbol;

struct StageCase {
  TensorModel model;
  std::vector<StageGraph> graphs;
};

StageCase MakeCase(const StageOptions& options) {
  const Status fits = CheckStageOptions(options);
  EXPECT_TRUE(fits) << fits.error().message;
  auto model = MakeTensorModel(options);
  EXPECT_TRUE(model) << model.error().message;
  auto graphs = MakeStageGraphs(*model);
  EXPECT_TRUE(graphs) << graphs.error().message;
  return {*std::move(model), *std::move(graphs)};
}

// A small layer whose sizes are divisible by degrees of 1, 2 and 4.
StageOptions SmallOptions() {
  return {.layers = 1,
          .batch = 16,
          .micro_batch = 16,
          .sequence = 64,
          .dmodel = 64,
          .dff = 128,
          .heads = 16,
          .kv_heads = 8,
          .vocabulary = 256,
          .experts = 4};
}

// Number and elements of the collectives of one rank, over all stages: "all_gather tp".
using Moved = std::map<std::string, std::pair<int64_t, double>>;

struct Totals {
  double operations = 0;
  Moved moved;
  int64_t sends = 0;
  int64_t recvs = 0;
};

Totals TotalsOf(const StageCase& made) {
  Totals totals;
  for (const StageGraph& graph : made.graphs) {
    for (const GraphNode& node : graph.nodes) {
      const auto& tensor = made.model.tensors[graph.tensors[node.tensor].tensor];
      switch (node.kind) {
        case GraphNode::Kind::kCompute:
          totals.operations += made.model.patterns[tensor.pattern].operations;
          break;
        case GraphNode::Kind::kCollectiveX1:
        case GraphNode::Kind::kCollectiveX2: {
          Product over;
          over[node.collective.over] = 1;
          auto& [count, elements] =
              totals.moved[fmt::format("{} {}", etude::Name(node.collective.type), Text(over))];
          ++count;
          elements += node.size;
          break;
        }
        case GraphNode::Kind::kSend: ++totals.sends; break;
        case GraphNode::Kind::kRecv: ++totals.recvs; break;
      }
    }
  }
  return totals;
}

// Returns the totals of a step by docs/models/stage.md.
Totals ClosedForms(const StageOptions& o) {
  const bool moe = o.model == Model::kMoe;
  const bool llama = o.model == Model::kLlama;
  const auto num = [](int64_t value) { return static_cast<double>(value); };
  const double d = num(o.dp), c = num(o.cp), e = moe ? num(o.ep) : 1;
  const double t = moe ? num(o.tp) : num(o.tp * o.ep);
  const double D = num(o.dmodel), F = num(o.dff), V = num(o.vocabulary), E = num(o.experts);
  const double H = num(o.heads), K = moe || llama ? num(o.kv_heads) : H, k = num(o.top_experts);
  const double L = num(o.layers), M = num(o.batch / o.micro_batch);
  const bool tpsp = o.tpsp || moe || llama;
  const double U = num(o.micro_batch) * num(o.sequence) * D / (d * c);
  const double u = tpsp ? U / t : U;
  const double kv = K / H, q = 1 + 2 * kv, n = E / e;
  const double Ue = U * k / (E * e), R = U * k / t;
  const double Ve = V * D / (tpsp ? 1 : t);
  const double shards = o.weight_sharded ? d : 1;

  double attention = (3 * q + 3) * D * U / t + (2 + 6 * kv) * U / t + 21 * U / t;
  if (llama || moe) attention += 2 * kv * U / t;
  double ffn = 6 * F * U / t;
  double weights = D * D * q / t + D * D / t + (llama ? 3 : 2) * D * F / t;
  if (llama) ffn = 9 * F * U / t + 3 * F * U / (D * t) + U;
  if (moe) {
    ffn = n * (6 * F * Ue / t + 2 * Ue / t + 2 * R / e) + (n > 1 ? 2 * R / e : 0);
    ffn += R + 3 * R / D + 8 * R / e + 3 * u / e;
    weights = D * D * q / t + D * D / t + D * k / e + n * 2 * D * F / t;
  }
  Totals totals;
  totals.operations = M * (L * (attention + 24 * u + ffn) + 6 * V * U / t + 10 * u) +
                      L * 2 * weights / shards + 4 * Ve;

  const auto add = [&](double degree, const std::string& what, double count, double elements) {
    if (degree == 1) return;
    auto& [total, sum] = totals.moved[what];
    total += static_cast<int64_t>(count);
    sum += count * elements;
  };
  const double layers = M * L;
  if (tpsp) {
    add(t, "all_gather tp", layers * (moe ? 3 : 6), U / t);
    add(t, "reduce_scatter tp", layers * (moe ? 2 : 4), U);
    add(t, "all_reduce tp", 2, Ve);
  } else {
    add(t, "all_reduce tp", layers * 4 + M, U);
    add(t, "all_gather tp", M, U / t);
    add(t, "all_reduce tp", M, U * V / D);
  }
  add(c, "all_gather cp", 2 * layers, kv * U / t);
  add(c, "reduce_scatter cp", 2 * layers, c * U / t);
  add(c, "all_reduce cp", layers, weights);
  add(c, "all_reduce cp", 2, Ve);
  if (o.weight_sharded) {
    add(d, "all_gather dp", 2 * layers, weights / d);
    add(d, "reduce_scatter dp", layers, weights);
  } else {
    add(d, "all_reduce dp", layers, weights);
  }
  add(d, "all_reduce dp", 2, Ve);
  if (moe) {
    add(t, "all_gather tp", layers * n * 3, Ue / t);
    add(t, "reduce_scatter tp", layers * n * 2, Ue);
    add(e, "all_to_all ep", 4 * layers, U * k / (t * e));
    add(e, "all_gather ep", 2 * layers, U / (t * e));
    add(e, "all_gather ep", layers, D * k / e);
  }
  // Two each way at every boundary; a head that is not on the last stage adds one in each
  // direction.
  totals.sends = static_cast<int64_t>(M) * 2 * (o.pp - 1 + (StageOfHead(o) != o.pp - 1 ? 1 : 0));
  totals.recvs = totals.sends;
  return totals;
}

StageOptions RandomOptions(std::mt19937& random) {
  const auto pick = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  StageOptions options = SmallOptions();
  options.model = std::vector{Model::kGpt, Model::kLlama, Model::kMoe}[random() % 3];
  options.dp = pick({1, 2, 4});
  options.tp = pick({1, 2, 4});
  options.cp = pick({1, 2});
  options.ep = pick({1, 2});
  options.pp = pick({1, 2, 3});
  options.layers = options.pp + pick({0, 1, 2});
  options.micro_batch = pick({4, 16});
  options.experts = options.ep * pick({1, 2});
  options.top_experts = pick({1, 2});
  options.weight_sharded = pick({0, 1}) == 1;
  options.mixed_precision = options.model == Model::kLlama || pick({0, 1}) == 1;
  options.tpsp = options.model != Model::kGpt || pick({0, 1}) == 1;
  return options;
}

TEST(StageGraph, TotalsAreThoseOfTheClosedForms) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const StageOptions options = RandomOptions(random);
    const Totals found = TotalsOf(MakeCase(options));
    const Totals expected = ClosedForms(options);
    SCOPED_TRACE(fmt::format("case {}: model {}, dp {}, tp {}, cp {}, ep {}, pp {}, layers {}", i,
                             static_cast<int>(options.model), options.dp, options.tp, options.cp,
                             options.ep, options.pp, options.layers));
    EXPECT_NEAR(found.operations, expected.operations, 1e-9 * expected.operations);
    ASSERT_EQ(found.moved.size(), expected.moved.size());
    for (const auto& [what, total] : expected.moved) {
      const auto at = found.moved.find(what);
      ASSERT_NE(at, found.moved.end()) << what;
      EXPECT_EQ(at->second.first, total.first) << what;
      EXPECT_NEAR(at->second.second, total.second, 1e-9 * total.second) << what;
    }
    EXPECT_EQ(found.sends, expected.sends);
    EXPECT_EQ(found.recvs, expected.recvs);
  }
}

// No computation without work, no cycles, and every stage connected.
TEST(StageGraph, HasWorkInEveryComputationAndNoCycle) {
  std::mt19937 random(2);
  for (int i = 0; i < 10; ++i) {
    const StageCase made = MakeCase(RandomOptions(random));
    for (const StageGraph& graph : made.graphs) {
      std::vector<int> waits(graph.nodes.size());
      std::vector<std::vector<uint32_t>> children(graph.nodes.size());
      std::vector<uint32_t> ready;
      for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
        const GraphNode& node = graph.nodes[n];
        if (node.kind == GraphNode::Kind::kCompute) {
          const auto& tensor = made.model.tensors[graph.tensors[node.tensor].tensor];
          EXPECT_GT(made.model.patterns[tensor.pattern].operations, 0) << tensor.id;
        }
        waits[n] = static_cast<int>(node.deps.size());
        for (const uint32_t dep : node.deps) children[dep].push_back(n);
        if (waits[n] == 0) ready.push_back(n);
      }
      size_t done = 0;
      for (; done < ready.size(); ++done) {
        for (const uint32_t child : children[ready[done]]) {
          if (--waits[child] == 0) ready.push_back(child);
        }
      }
      EXPECT_EQ(done, graph.nodes.size());
    }
  }
}

// dp 2, tp 2, cp 1 in STAGE's numbering.
TEST(StageGraph, GroupsAreNumberedDimensionByDimension) {
  StageOptions options = SmallOptions();
  options.dp = options.tp = 2;
  const auto job = StageJob::Make(options, 0);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->ranks(), 4);
  EXPECT_EQ(
      job->GroupsJson(),
      R"({"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3], "5": [0], "6": [2], "7": [1], "8": [3]})");
  const RankGrid grid(MakeCase(options).model);
  EXPECT_EQ(grid.Group(3, kDp), 2);
  EXPECT_EQ(grid.Group(3, kTp), 4);
  EXPECT_EQ(grid.Group(3, kCp), 8);
}

// Coordinates dp 1, tp 1, cp 0, ep 1 of stage 1; all degrees are 2.
TEST(StageGraph, RanksCountDpFirstAndStagesLast) {
  StageOptions options = SmallOptions();
  options.model = Model::kMoe;
  options.dp = options.tp = options.cp = options.ep = options.pp = 2;
  options.layers = 2;
  const RankGrid grid(MakeCase(options).model);
  const int64_t rank = 16 + 8 + 2 + 1;
  EXPECT_EQ(grid.ranks(), 32);
  EXPECT_EQ(grid.stage(rank), 1);
  EXPECT_EQ(grid.RankIn(0, rank), 11);
  const auto groups = grid.Groups();
  EXPECT_EQ(groups.size(), 4u * 16);
  EXPECT_EQ(groups.at(grid.Group(rank, kDp)), (std::vector<int64_t>{26, 27}));
  EXPECT_EQ(groups.at(grid.Group(rank, kTp)), (std::vector<int64_t>{25, 27}));
  EXPECT_EQ(groups.at(grid.Group(rank, kCp)), (std::vector<int64_t>{27, 31}));
  EXPECT_EQ(groups.at(grid.Group(rank, kEp)), (std::vector<int64_t>{19, 27}));
}

// Three layers on two stages: STAGE puts the head on stage 0, so the last layer sends there.
TEST(StageGraph, TheHeadMayBeOnAnEarlierStage) {
  StageOptions options = SmallOptions();
  options.pp = 2;
  options.layers = 3;
  EXPECT_EQ(StageOfHead(options), 0);
  const StageCase made = MakeCase(options);
  std::vector<std::string> sent;
  for (const StageGraph& graph : made.graphs) {
    for (const GraphNode& node : graph.nodes) {
      if (node.kind != GraphNode::Kind::kSend) continue;
      sent.push_back(fmt::format(
          "{} to {}", made.model.tensors[graph.tensors[node.tensor].tensor].id, node.peer_stage));
    }
  }
  EXPECT_EQ(sent,
            (std::vector<std::string>{"mb0.transformer.1.ffn_res.y@0 to 1", "mb0.out_emb.dx@0 to 1",
                                      "mb0.transformer.2.input_norm.dx@0 to 0",
                                      "mb0.transformer.2.ffn_res.y@0 to 0"}));
  options.mixed_precision = true;
  EXPECT_EQ(StageOfHead(options), 1);
}

TEST(StageOptionsCheck, SaysWhatDoesNotDivide) {
  const auto error = [](auto change) {
    StageOptions options = SmallOptions();
    change(options);
    const Status status = CheckStageOptions(options);
    if (status) return std::string("fine");
    EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
    return status.error().message;
  };
  EXPECT_EQ(error([](StageOptions&) {}), "fine");
  EXPECT_EQ(error([](StageOptions& o) { o.dp = 0; }), "--dp: found 0, expected 1 to 1000000000");
  EXPECT_EQ(error([](StageOptions& o) { o.micro_batch = 5; }),
            "--batch 16: expected a multiple of --micro_batch 5");
  EXPECT_EQ(error([](StageOptions& o) { o.pp = 2; }),
            "--num_stacks 1: expected as many as --pp 2 or more");
  EXPECT_EQ(error([](StageOptions& o) { o.dp = o.tp = 2048; }), "more than 1048576 ranks");
  EXPECT_EQ(error([](StageOptions& o) {
              o.model = Model::kMoe;
              o.ep = 3;
            }),
            "--experts 4: expected a multiple of --ep 3");
  EXPECT_EQ(error([](StageOptions& o) {
              o.model = Model::kMoe;
              o.tpsp = false;
            }),
            "--tpsp false: expected true for the model 'moe'");
  EXPECT_EQ(error([](StageOptions& o) {
              o.model = Model::kDebug;
              o.pp = 2;
            }),
            "--pp 2: expected 1 for the model 'debug'");
}

}  // namespace
}  // namespace etude::stage
