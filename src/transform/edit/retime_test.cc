#include "src/transform/edit/retime.h"

#include <gtest/gtest.h>

#include <string_view>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

NodeId NodeOf(const Trace& trace, std::string_view name) {
  NodeId found;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == name) found = node;
  });
  return found;
}

class Retiming : public ::testing::Test {
 protected:
  // A caller that runs itself for 10 µs before, and for 20 µs after an operator of 40 µs.
  Trace trace_ = PlantedTrace()
                     .Operator("caller", 1, 0, 70)
                     .Operator("callee", 1, 10, 50)
                     .Operator("next", 1, 80, 90)
                     .Label("other thread", 2, 85, 95)
                     .Read();
  std::vector<Nanos> longer_ = std::vector<Nanos>(trace_.node_count());

  Nanos Start(const Trace& trace, std::string_view name) {
    return *trace.start(NodeOf(trace, name)) - *trace.start(NodeOf(trace, "caller"));
  }
  Nanos Duration(const Trace& trace, std::string_view name) {
    return *trace.duration(NodeOf(trace, name));
  }
};

TEST_F(Retiming, OwnTimeGrowsWhereItIs) {
  longer_[NodeOf(trace_, "caller").index()] = Us(30);
  const auto changed = Retime(trace_, longer_, {});
  ASSERT_TRUE(changed);
  EXPECT_EQ(Duration(*changed, "caller"), Us(100));
  EXPECT_EQ(Start(*changed, "callee"), Us(20)) << "10 of 30 µs before it";
  EXPECT_EQ(Duration(*changed, "callee"), Us(40));
  EXPECT_EQ(Start(*changed, "next"), Us(110));
  EXPECT_EQ(Start(*changed, "other thread"), Us(115));
}

TEST_F(Retiming, OwnTimeShrinksToNothingAtTheLeast) {
  longer_[NodeOf(trace_, "caller").index()] = Us(-60);
  longer_[NodeOf(trace_, "callee").index()] = Us(-15);
  const auto changed = Retime(trace_, longer_, {});
  ASSERT_TRUE(changed);
  EXPECT_EQ(Duration(*changed, "caller"), Us(25));
  EXPECT_EQ(Duration(*changed, "callee"), Us(25));
  EXPECT_EQ(Start(*changed, "next"), Us(35));
}

TEST_F(Retiming, WithoutChangesTheTraceStays) {
  const auto changed = Retime(trace_, longer_, {});
  ASSERT_TRUE(changed);
  EXPECT_TRUE(changed->SameContent(trace_));
}

}  // namespace
}  // namespace etude
