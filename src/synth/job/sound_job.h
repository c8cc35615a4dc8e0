#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/run/calls/comm_log.h"
#include "src/synth/job/step_job.h"
#include "src/synth/pattern/astra_edges.h"
#include "src/trace/job/expect_layers.h"
#include "src/trace/same_trace.h"
#include "src/trace/validator.h"
#include "src/transform/astra_sim/for_astra_sim.h"
#include "src/transform/to_chakra.h"

namespace etude::testing_sound {

// Checks that all communications find their partners and that there is no deadlock: no trace has a
// cycle, and all communications, each one node for all participants, have an order.
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
  testing_layers::ExpectLayers(job.TraceOf(0).value(), what);
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

// Checks that `etude convert --for astra-sim` changes only what FindAstraEdges reports.
inline void ExpectFitForAstraSim(const StepJob& job, const std::string& what) {
  std::vector<RunnableRank> ranks;
  const std::map<int64_t, std::vector<int64_t>> groups = job.Groups();
  for (int64_t rank = 0; rank < job.ranks(); ++rank) {
    const auto chakra = ToChakra(job.TraceOf(rank).value(), {});
    ASSERT_TRUE(chakra) << what << ": " << chakra.error().message;
    auto one = MakeRunnableRank(chakra->trace, {.compute = RunnableCompute::kFlops});
    ASSERT_TRUE(one) << what << ": " << one.error().message;
    for (RunnableGroup& group : one->groups) group.ranks = groups.at(std::stoll(group.name));
    ranks.push_back(*std::move(one));
  }
  auto runnable = MakeRunnableJob(std::move(ranks), {});
  ASSERT_TRUE(runnable) << what << ": " << runnable.error().message;
  const auto made = ForAstraSim(*std::move(runnable), {.compute = RunnableCompute::kFlops});
  ASSERT_TRUE(made) << what << ": " << made.error().message;
  const AstraEdges edges = FindAstraEdges(job);
  for (const RunnableNoteRow& row : kRunnableNotes) {
    uint64_t expected = 0;
    if (row.note == RunnableNote::kUnknownTime) continue;  // durations are for simulators to find
    if (row.note == RunnableNote::kSmallGather) expected = edges.small_gathers;
    if (row.note == RunnableNote::kFirstRaised) expected = edges.small_firsts;
    EXPECT_EQ(made->notes[row.note], expected) << what << ": " << row.key;
  }
  EXPECT_TRUE(made->messages.empty()) << what;
}

}  // namespace etude::testing_sound
