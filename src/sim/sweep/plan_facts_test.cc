#include "src/sim/sweep/plan_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/sim/sweep/sweep_result.h"

namespace etude {
namespace {

PlanFacts FactsOfFour() {
  PlanFacts facts;
  facts.ranks = 4;
  facts.item = "token";
  facts.items = 24;
  facts.flops = 201'600;
  facts.bubble = 3.0 / 11;
  facts.memory = {.peak = Bytes{100},
                  .weights = Bytes{20},
                  .gradients = Bytes{10},
                  .optimizer = Bytes{30},
                  .cache = Bytes{5}};
  facts.device = "toy";
  facts.peak = 1e6;
  facts.capacity = Bytes{100};
  return facts;
}

// 24 tokens in 0.1 s on four devices: 201,600 of 400,000 possible operations.
TEST(PlanFacts, RatesOfAStep) {
  const auto rates = RatesOf(FactsOfFour(), Nanos{100'000'000});
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->items_per_second, 240);
  EXPECT_DOUBLE_EQ(rates->items_per_second_per_device, 60);
  EXPECT_DOUBLE_EQ(*rates->mfu, 0.504);
  EXPECT_FALSE(RatesOf(FactsOfFour(), Nanos{0}));
  PlanFacts unknown = FactsOfFour();
  unknown.peak.reset();
  EXPECT_FALSE(RatesOf(unknown, Nanos{1})->mfu);
  EXPECT_EQ(FactsOfFour().memory.activations(), Bytes{35});
}

TEST(PlanFacts, AreReadAsWritten) {
  EXPECT_EQ(ReadPlanFacts(ToJson(FactsOfFour())), FactsOfFour());
  PlanFacts bare = FactsOfFour();
  bare.bubble.reset();
  bare.peak.reset();
  bare.capacity.reset();
  bare.device.clear();
  EXPECT_EQ(ReadPlanFacts(ToJson(bare)), bare);
  for (const char* key : {"ranks", "item", "items", "model_flops", "memory"}) {
    nlohmann::ordered_json json = ToJson(bare);
    json.erase(key);
    EXPECT_FALSE(ReadPlanFacts(json)) << key;
    json[key] = -1;
    EXPECT_FALSE(ReadPlanFacts(json)) << key;
  }
  EXPECT_FALSE(ReadPlanFacts(nlohmann::ordered_json(3)));
}

SweepRow RowOf(size_t point, int64_t step, int64_t items, int64_t peak) {
  SweepRow row;
  row.point = point;
  row.outcome.emplace();
  row.outcome->times.emplace().step = step;
  row.outcome->plan = FactsOfFour();
  row.outcome->plan->items = items;
  row.outcome->plan->memory.peak = Bytes{peak};
  return row;
}

std::vector<size_t> PointsOf(const std::vector<const SweepRow*>& rows) {
  std::vector<size_t> points;
  for (const SweepRow* row : rows) points.push_back(row->point);
  return points;
}

// Twice the batch in less than twice the time ranks higher. Rows that do not fit follow, and
// unfinished rows come last.
TEST(SweepRanking, ByThroughputWithWhatDoesNotFitLast) {
  std::vector<SweepRow> rows = {RowOf(0, 100, 24, 101), RowOf(1, 100, 24, 100),
                                RowOf(2, 180, 48, 90), RowOf(3, 90, 24, 102)};
  rows.push_back(RowOf(4, 1, 24, 1));
  rows.back().outcome->state = SweepOutcome::State::kRefused;
  EXPECT_EQ(DefaultOrder(rows), SweepOrder::kThroughput);
  EXPECT_EQ(PointsOf(Ranking(rows, SweepOrder::kThroughput)), (std::vector<size_t>{2, 1, 3, 0, 4}));
  EXPECT_EQ(PointsOf(Ranking(rows, SweepOrder::kStep)), (std::vector<size_t>{1, 2, 3, 0, 4}));
  EXPECT_EQ(PointsOf(Ranking(rows, SweepOrder::kMemory)), (std::vector<size_t>{2, 1, 0, 3, 4}));
  // The spec's capacity takes precedence over the device's.
  rows[0].capacity = Bytes{101};
  rows[1].capacity = Bytes{99};
  EXPECT_EQ(rows[0].fits(), true);
  EXPECT_EQ(rows[1].fits(), false);
  MarkFront({SweepMeasure::kThroughput, SweepMeasure::kMemory}, rows);
  EXPECT_TRUE(rows[2].is_best);
  EXPECT_FALSE(rows[1].is_best);
  // Without a plan, or with different items, there is no common throughput.
  rows[1].outcome->plan->item = "image";
  EXPECT_EQ(DefaultOrder(rows), SweepOrder::kStep);
  rows[1].outcome->plan.reset();
  EXPECT_EQ(DefaultOrder(rows), SweepOrder::kStep);
  EXPECT_EQ(rows[1].fits(), std::nullopt);
}

}  // namespace
}  // namespace etude
