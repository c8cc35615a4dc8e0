#include "src/sim/program/sim_program.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

std::vector<std::string> WarningsOf(const std::vector<uint64_t>& ids, uint64_t said) {
  TraceBuilder builder;
  for (const uint64_t id : ids) builder.AddNode({.source_id = id});
  builder.stats().Count(Stat::kDuplicateId, said);
  std::vector<std::string> warnings;
  RunContext context;
  context.warn = [&](std::string_view text) { warnings.emplace_back(text); };
  WarnOfIds(builder.Finish().value(), "a.et", context);
  return warnings;
}

TEST(WarnOfIds, NamesAnIdThatSeveralNodesHave) {
  EXPECT_EQ(WarningsOf({7, 5, 7}, 0),
            std::vector<std::string>{
                "a.et: several nodes have the id 7; dependencies on it mean the first"});
  EXPECT_TRUE(WarningsOf({7, 5}, 0).empty());
}

TEST(WarnOfIds, IdsAreUniqueThoughTheCountSaysOtherwise) {
  EXPECT_TRUE(WarningsOf({7, 5}, 1).empty());
}

TEST(MakeSimRank, ANodeTakesTheTimeThatItsChildrenDoNot) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kChakra);
  builder.AddNode(
      {.source_id = 1, .kind = NodeKind::kLabel, .duration = Nanos{100}, .exclusive = Nanos{40}});
  builder.AddNode(
      {.source_id = 2, .kind = NodeKind::kOperator, .parent = 1, .duration = Nanos{60}});
  const SimRank rank = MakeSimRank(builder.Finish().value()).value();
  EXPECT_EQ(rank.program->nodes[0].duration, 40);
  EXPECT_EQ(rank.program->nodes[1].duration, 60);
}

}  // namespace
}  // namespace etude
