#include "src/analysis/compare/trace_diff.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/planted_trace.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;
using Change = TraceDiff::Change;

// Makes consecutive operators of 10 µs each.
PlantedTrace OneAfterTheOther(const std::vector<std::string>& names, int64_t each = 10) {
  PlantedTrace planted;
  int64_t now = 0;
  for (const std::string& name : names) {
    planted.Operator(name, 1, now, now + each);
    now += each;
  }
  return planted;
}

TEST(TraceDiff, NothingAndNothingAreTheSame) {
  const Trace a = PlantedTrace().Read();
  const TraceDiff diff = DiffTraces(a, a);
  EXPECT_TRUE(diff.is_same());
  EXPECT_FALSE(diff.unpaired);
}

TEST(TraceDiff, OtherTimesAreNoDifference) {
  const Trace a = OneAfterTheOther({"mm", "relu"}).Read();
  const Trace b = OneAfterTheOther({"mm", "relu"}, 30).Read();
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_TRUE(diff.is_same());
  EXPECT_EQ(diff.same, 2u);
  EXPECT_EQ(diff.span_a, Us(20));
  EXPECT_EQ(diff.span_b, Us(60));
  ASSERT_EQ(diff.ops.size(), 2u);
  EXPECT_EQ(diff.ops[0].self_b, Us(30));
}

TEST(TraceDiff, AddedAndRemoved) {
  const Trace a = OneAfterTheOther({"mm", "relu", "mm", "sum"}).Read();
  const Trace b = OneAfterTheOther({"mm", "mm", "dropout", "sum"}).Read();
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_EQ(diff.same, 3u);
  ASSERT_EQ(diff.entries.size(), 2u);
  EXPECT_EQ(diff.entries[0].change, Change::kRemoved);
  EXPECT_EQ(a.name(diff.entries[0].a), "relu");
  EXPECT_EQ(diff.entries[1].change, Change::kAdded);
  EXPECT_EQ(b.name(diff.entries[1].b), "dropout");
  const TraceDiff back = DiffTraces(b, a);
  EXPECT_EQ(back.removed, 1u);
  EXPECT_EQ(back.added, 1u);
  EXPECT_EQ(back.same, 3u);
}

TEST(TraceDiff, NothingInCommon) {
  const Trace a = OneAfterTheOther({"mm", "relu"}).Read();
  const Trace b = OneAfterTheOther({"conv"}).Read();
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_TRUE(diff.unpaired);
  EXPECT_EQ(diff.removed, 2u);
  EXPECT_EQ(diff.added, 1u);
}

// Layers without a unique element in one trace that occurs in the other.
TEST(TraceDiff, RepeatedLayersThatDifferAlike) {
  std::vector<std::string> few = {"embed"};
  std::vector<std::string> more = {"gather"};
  for (int layer = 0; layer < 50; ++layer) {
    for (const char* name : {"mm", "add", "gelu"}) few.emplace_back(name);
    for (const char* name : {"mm", "add", "to", "gelu"}) more.emplace_back(name);
  }
  few.emplace_back("loss");
  more.emplace_back("mean");
  const TraceDiff diff = DiffTraces(OneAfterTheOther(few).Read(), OneAfterTheOther(more).Read());
  EXPECT_FALSE(diff.unpaired);
  EXPECT_EQ(diff.same, 150u);
  EXPECT_EQ(diff.removed, 2u);
  EXPECT_EQ(diff.added, 52u);
}

TEST(TraceDiff, HowThreadsInterleaveIsNoDifference) {
  const Trace a = PlantedTrace()
                      .Operator("a1", 1, 0, 10)
                      .Operator("b1", 2, 5, 15)
                      .Operator("a2", 1, 20, 30)
                      .Operator("b2", 2, 25, 35)
                      .Read();
  const Trace b = PlantedTrace()
                      .Operator("a1", 1, 0, 10)
                      .Operator("a2", 1, 11, 13)
                      .Operator("b1", 2, 15, 18)
                      .Operator("b2", 2, 25, 35)
                      .Read();
  EXPECT_TRUE(DiffTraces(a, b).is_same());
}

// Any thread of a pool may take any piece of work: the order is random, also within a thread.
TEST(TraceDiff, WhichThreadOfAPoolTookWhatIsNoDifference) {
  const auto calls = [] {
    return PlantedTrace()
        .Label("ProfilerStep#1", 1, 0, 100)
        .Operator("c10d::allgather_", 1, 1, 2)
        .Operator("c10d::allreduce_", 1, 3, 4);
  };
  const Trace a = calls()
                      .Operator("gloo:all_gather", 2, 5, 10)
                      .Operator("aten::copy_", 2, 11, 12)
                      .Operator("aten::view", 2, 13, 14)
                      .Operator("gloo:all_reduce", 3, 6, 30)
                      .Operator("gloo:all_gather", 3, 31, 40)
                      .Operator("aten::copy_", 3, 41, 42)
                      .Operator("aten::view", 3, 43, 44)
                      .Read();
  const Trace b = calls()
                      .Operator("gloo:all_reduce", 2, 5, 7)
                      .Operator("gloo:all_gather", 3, 6, 10)
                      .Operator("gloo:all_gather", 2, 8, 20)
                      .Operator("aten::copy_", 3, 11, 12)
                      .Operator("aten::view", 3, 13, 14)
                      .Operator("aten::copy_", 2, 21, 22)
                      .Operator("aten::view", 2, 23, 24)
                      .Read();
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_TRUE(diff.is_same());
  EXPECT_EQ(diff.same, 9u);
  const Trace more = calls()
                         .Operator("gloo:all_reduce", 2, 5, 7)
                         .Operator("gloo:broadcast", 3, 6, 10)
                         .Operator("gloo:all_gather", 2, 8, 20)
                         .Read();
  const TraceDiff less = DiffTraces(a, more);
  EXPECT_EQ(less.same, 4u);
  EXPECT_EQ(less.removed, 5u);
  EXPECT_EQ(less.added, 1u);
}

TEST(TraceDiff, WhichOfSeveralThreadsOfAutogradTookWhatIsNoDifference) {
  const auto trace = [](int first, int second) {
    const std::string evaluate = "autograd::engine::evaluate_function: ";
    return PlantedTrace()
        .Label("ProfilerStep#1", 1, 0, 100)
        .Operator(evaluate + "MmBackward0", first, 5, 20)
        .Operator("aten::mm", first, 6, 10)
        .Operator(evaluate + "AddBackward0", second, 21, 40)
        .Operator("aten::sum", second, 22, 30)
        .Operator(evaluate + "ReluBackward0", first, 50, 60)
        .Read();
  };
  EXPECT_TRUE(DiffTraces(trace(2, 3), trace(3, 2)).is_same());
  EXPECT_TRUE(DiffTraces(trace(2, 3), trace(2, 2)).is_same());
}

TEST(TraceDiff, DeviceWorkByTheOrderOfLaunches) {
  const Trace a = PlantedTrace()
                      .Launch(1, 0, 2, 1)
                      .Launch(1, 3, 5, 2)
                      .Kernel("k1", 20, 10, 50, 1)
                      .Kernel("k2", 30, 11, 20, 2)
                      .Read();
  const Trace b = PlantedTrace()
                      .Launch(1, 0, 2, 1)
                      .Launch(1, 3, 5, 2)
                      .Kernel("k1", 20, 12, 40, 1)
                      .Kernel("k2", 30, 11, 20, 2)
                      .Read();
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_TRUE(diff.is_same());
  EXPECT_EQ(diff.ops[0].name, "k1") << "the most time gone";
  EXPECT_EQ(diff.ops[0].self_a, Us(40));
  EXPECT_EQ(diff.ops[0].self_b, Us(28));
}

TEST(TraceDiff, OtherShapes) {
  const auto trace = [](int rows) {
    const std::string tensor = "[[1,2,0," + std::to_string(rows) + ",4,\"cpu\"]]";
    const std::string text =
        R"({"schema":"1.1.1","nodes":[{"id":2,"name":"aten::relu","ctrl_deps":1,"inputs":{"values":)" +
        tensor + R"(,"shapes":[[)" + std::to_string(rows) +
        R"et(]],"types":["Tensor(float)"]},"outputs":{"values":[],"shapes":[],"types":[]},)et"
        R"("attrs":[{"name":"op_schema","type":"string","value":"x"}]}]})";
    return testing_support::ReadWith(MakeEtJsonReader, text).value();
  };
  const Trace a = trace(8), b = trace(9);
  EXPECT_TRUE(DiffTraces(a, a).is_same());
  const TraceDiff diff = DiffTraces(a, b);
  EXPECT_EQ(diff.reshaped, 1u);
  ASSERT_EQ(diff.entries.size(), 1u);
  EXPECT_EQ(diff.entries[0].change, Change::kShapes);
  EXPECT_FALSE(diff.is_same());
}

// A compiler's kernel has the name of the operator that launches it.
TEST(TraceDiff, TimesOfTheHostAndOfDevicesDoNotAddUp) {
  const auto trace = [](int64_t kernel) {
    return PlantedTrace()
        .Label("Compiled", 1, 0, 50)
        .Operator("triton_relu", 1, 10, 30)
        .Launch(1, 12, 13, 1)
        .Kernel("triton_relu", 7, 100, 100 + kernel, 1)
        .Read();
  };
  const Trace a = trace(50);
  const Trace b = trace(90);
  const TraceDiff diff = DiffTraces(a, b);
  for (const auto& sums : {diff.ops, diff.modules}) {
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(sums[0].place, Place::kDevice) << "what changed more";
    EXPECT_EQ(sums[0].self_a, Us(50));
    EXPECT_EQ(sums[0].self_b, Us(90));
    EXPECT_EQ(sums[0].count_a, 1u);
    EXPECT_EQ(sums[1].name, sums[0].name);
    EXPECT_EQ(sums[1].place, Place::kHost);
    EXPECT_EQ(sums[1].self_a, Us(19)) << "without the launch";
  }
}

}  // namespace
}  // namespace etude
