#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/analysis/comm_log.h"
#include "src/analysis/comm_match.h"
#include "src/synth/same_trace.h"
#include "src/synth/step_job.h"
#include "src/trace/validator.h"

namespace etude::testing_sound {

// Everything that communicates meets its partners, no trace waits for itself, and no two ranks for
// each other: all communications, each one node for all who take part, have an order.
inline void ExpectSound(const StepJob& job, const std::string& what) {
  std::vector<CommLog> logs;
  uint64_t calls = 0;
  for (int64_t rank = 0; rank < job.ranks(); ++rank) {
    const auto trace = job.TraceOf(rank);
    ASSERT_TRUE(trace) << what << ": " << trace.error().message;
    EXPECT_TRUE(IsValid(Validate(*trace))) << what;
    EXPECT_TRUE(trace->is_acyclic()) << what;
    logs.push_back(ReadCommLog(*trace, rank));
    calls += logs.back().calls.size();
  }
  const auto whole = job.AsJob();
  ASSERT_TRUE(whole) << what << ": " << whole.error().message;
  EXPECT_EQ(whole->rank_count(), job.ranks());
  for (int64_t rank = 0; rank < job.ranks(); ++rank) {
    EXPECT_TRUE(
        testing_same::SameTrace(TraceOfRank(*whole, rank).value(), job.TraceOf(rank).value()))
        << what;
  }
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 0u) << what << ": " << match.first_mismatch;
  EXPECT_EQ(match.unknown_partners, 0u) << what;
  EXPECT_EQ(calls == 0, match.collectives + match.point_to_point == 0) << what;
}

}  // namespace etude::testing_sound
