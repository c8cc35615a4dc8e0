#include "src/trace/trace_traits.h"

#include <gtest/gtest.h>

#include "src/trace/trace.h"

namespace etude {
namespace {

TEST(TraceTraits, ProfilesAreProfilesInEveryFormat) {
  EXPECT_TRUE(TraitsOf(TraceFormat::kKineto).is_profile);
  EXPECT_EQ(TraitsOf(TraceFormat::kPerfetto), TraitsOf(TraceFormat::kKineto));
  for (const TraceFormat format :
       {TraceFormat::kUnknown, TraceFormat::kPyTorchEt, TraceFormat::kLinked, TraceFormat::kChakra,
        TraceFormat::kNative}) {
    EXPECT_FALSE(TraitsOf(format).is_profile) << Name(format);
  }
}

TEST(TraceTraits, WaitsAreStatedOrInTimesButNotBoth) {
  for (const TraceFormat format :
       {TraceFormat::kKineto, TraceFormat::kChakra, TraceFormat::kNative, TraceFormat::kPerfetto}) {
    EXPECT_NE(TraitsOf(format).states_order, TraitsOf(format).waits_in_times) << Name(format);
  }
}

TEST(TraceTraits, AnotherFormatLeavesDurationsAsTheyAre) {
  TraceInfo info;
  info.SetFormat(TraceFormat::kLinked);
  EXPECT_FALSE(info.traits.exclusive_durations);
  info.traits.exclusive_durations = true;
  info.SetFormat(TraceFormat::kChakra);
  EXPECT_TRUE(info.traits.exclusive_durations);
  EXPECT_TRUE(info.traits.states_order);
  EXPECT_FALSE(info.traits.is_linked);
}

}  // namespace
}  // namespace etude
