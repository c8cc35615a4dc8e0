#include "src/trace/simulated.h"

#include <gtest/gtest.h>

#include "src/trace/validator.h"

namespace etude {
namespace {

TEST(Simulated, IsSaidOnce) {
  TraceBuilder builder;
  EXPECT_FALSE(HostComputes(builder));
  for (int i = 0; i < 2; ++i) {
    StateSimulated(builder);
    StateHostComputes(builder);
  }
  EXPECT_TRUE(HostComputes(builder));
  EXPECT_EQ(builder.info().extras.size(), 2u);
  const Trace trace = builder.Finish().value();
  EXPECT_TRUE(IsSimulated(trace));
  EXPECT_TRUE(HostComputes(trace));
}

TEST(Simulated, AnythingElseSaysNothing) {
  TraceBuilder builder;
  builder.info().extras.push_back(
      {.key = builder.Intern("etude_simulated"), .text = builder.Intern("\"yes\"")});
  const Trace trace = builder.Finish().value();
  EXPECT_FALSE(IsSimulated(trace));
  EXPECT_FALSE(HostComputes(trace));
}

TEST(Simulated, ARankMayDoNothing) {
  EXPECT_FALSE(IsValid(Validate(TraceBuilder().Finish().value())));
  TraceBuilder builder;
  StateSimulated(builder);
  EXPECT_TRUE(Validate(builder.Finish().value()).empty());
}

}  // namespace
}  // namespace etude
