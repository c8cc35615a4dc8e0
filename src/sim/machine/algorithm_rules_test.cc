#include "src/sim/machine/algorithm_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/sim/collective/collective_algorithms.h"

namespace etude {
namespace {

using enum CollectiveAlgorithm;

SimMachine RuledMachine() {
  SimMachine machine;
  machine.dims = {{.shape = NetworkShape::kGraph, .npus = 4},
                  {.shape = NetworkShape::kGraph, .npus = 2}};
  machine.system.algorithms[CollectiveType::kAllReduce] = {{.algorithm = kRing},
                                                           {.algorithm = kRing}};
  return machine;
}

TEST(AlgorithmRules, TheFirstThatFitsCounts) {
  SimMachine machine = RuledMachine();
  ASSERT_TRUE(UseAlgorithmRules(R"(
    [[rule]]
    collective = "all_reduce"
    bytes = [0, "64KiB"]
    algorithm = "bruck"
    [[rule]]
    collective = "all_reduce"
    ranks = [4, 8]
    algorithm = ["ring", "direct"]
    [[rule]]
    collective = "gather"
    algorithm = "oneDirect"
  )",
                                "rules.toml", machine));
  const SystemModel& system = machine.system;
  const auto all_reduce = [&](int64_t ranks, int64_t bytes) {
    return *system.FindAlgorithms(CollectiveType::kAllReduce, ranks, bytes);
  };
  using Choices = std::vector<AlgorithmChoice>;
  EXPECT_EQ(all_reduce(8, 65'536), (Choices{{.algorithm = kBruck}, {.algorithm = kBruck}}));
  EXPECT_EQ(all_reduce(8, 65'537), (Choices{{.algorithm = kRing}, {.algorithm = kDirect}}));
  EXPECT_EQ(all_reduce(4, 1 << 20), (Choices{{.algorithm = kRing}, {.algorithm = kDirect}}));
  EXPECT_EQ(all_reduce(2, 1 << 20), (Choices{{.algorithm = kRing}, {.algorithm = kRing}}));
  EXPECT_EQ(*system.FindAlgorithms(CollectiveType::kGather, 8, 1),
            (Choices{{.algorithm = kDirect, .whole = true}}));
  EXPECT_EQ(system.FindAlgorithms(CollectiveType::kAllToAll, 8, 1), nullptr);
}

TEST(AlgorithmRules, GlooHasAnAlgorithmForEachCollective) {
  SimMachine machine = RuledMachine();
  ASSERT_TRUE(UseAlgorithmRules("", "gloo", machine));
  for (const CollectiveType type :
       {CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
        CollectiveType::kAllToAll, CollectiveType::kBroadcast, CollectiveType::kReduce,
        CollectiveType::kGather, CollectiveType::kScatter, CollectiveType::kBarrier}) {
    const auto* choices = machine.system.FindAlgorithms(type, 8, 1 << 20);
    ASSERT_NE(choices, nullptr);
    EXPECT_EQ(choices->size(), 1U);
    EXPECT_TRUE(choices->front().whole);
    EXPECT_TRUE(Info(choices->front().algorithm).IsFor(type));
  }
}

TEST(AlgorithmRules, NamePlaceAndExpectation) {
  const auto error_of = [](const std::string& rule) {
    SimMachine machine = RuledMachine();
    const Status used = UseAlgorithmRules("[[rule]]\n" + rule, "r.toml", machine);
    return used ? "" : used.error().message;
  };
  const std::string all_reduce = "collective = \"all_reduce\"\n";
  EXPECT_EQ(error_of("collective = \"allreduce\"\nalgorithm = \"ring\"\n"),
            "r.toml:2:14: collective: unknown 'allreduce'; did you mean 'all_reduce'?");
  EXPECT_EQ(error_of(all_reduce), "r.toml:1:1: [[rule]]: missing 'algorithm'");
  EXPECT_EQ(error_of(all_reduce + "algorithm = \"slicedAllReduce\"\n"),
            "r.toml:3:13: algorithm: found 'slicedAllReduce', expected for all_reduce ring, "
            "direct, halvingDoubling, doubleBinaryTree, inNetwork, bidirectionalRing, bruck, pat, "
            "optionally after the prefix 'one'");
  EXPECT_EQ(error_of(all_reduce + "ranks = [8, 2]\nalgorithm = \"ring\"\n"),
            "r.toml:3:9: ranks: found 8 to 2, expected the smaller one first");
  EXPECT_EQ(error_of(all_reduce + "bytes = \"1MiB\"\nalgorithm = \"ring\"\n"),
            "r.toml:3:9: bytes: found text, expected a list of the least and the most, as in [0, "
            "\"64KiB\"]");
  EXPECT_EQ(error_of(all_reduce + "algorithm = [\"ring\", \"ring\", \"ring\"]\n"),
            "r.toml: found 3 algorithms for all_reduce, expected one, or 2, one for each "
            "dimension");
  EXPECT_EQ(error_of(all_reduce + "algorithm = \"ring\"\nsize = 3\n"),
            "r.toml:4:1: unknown key 'size' of [[rule]], expected one of collective, ranks, bytes, "
            "algorithm");
}

}  // namespace
}  // namespace etude
