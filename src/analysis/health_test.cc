#include "src/analysis/health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/test_support.h"
#include "src/trace/carried_stats.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

Trace Kineto(const std::string& events) {
  return testing_support::ReadWith(MakeKinetoReader, "{\"traceEvents\":[" + events + "]}").value();
}
std::string Event(const std::string& category, const std::string& name, int tid, int64_t start_us,
                  int64_t duration_us, int correlation = 0) {
  return "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
         "\",\"pid\":0,\"tid\":" + std::to_string(tid) + ",\"ts\":" + std::to_string(start_us) +
         ",\"dur\":" + std::to_string(duration_us) +
         ",\"args\":{\"correlation\":" + std::to_string(correlation) +
         ",\"device\":0,\"stream\":" + std::to_string(tid) + "}}";
}
std::vector<std::string> Names(const Health& health) {
  std::vector<std::string> names;
  for (const Health::Reason& reason : health.reasons) names.push_back(reason.name);
  return names;
}
using Expected = std::vector<std::string>;

Health Judged(const Trace& trace) {
  const RecordedRun run(trace, {});
  return JudgeTrace(run, MakeRankRun(run, CommLog()));
}

TEST(Health, ACleanTraceIsGood) {
  const Health health = Judged(Kineto(Event("cpu_op", "aten::mm", 1, 0, 50) + "," +
                                      Event("cuda_runtime", "cudaLaunchKernel", 1, 10, 5, 7) + "," +
                                      Event("kernel", "gemm", 20, 20, 30, 7)));
  EXPECT_EQ(health.verdict(), Verdict::kGood);
  EXPECT_EQ(Names(health), Expected{});
}

TEST(Health, WorkAndLaunchesWithoutEachOther) {
  const Health health = Judged(Kineto(Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, 7) + "," +
                                      Event("kernel", "gemm", 20, 20, 30, 8)));
  EXPECT_EQ(Names(health), (Expected{"work_without_launch", "launch_without_work", "graph_time"}));
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust) << "all of them";
}

TEST(Health, WorkOfBeforeTheRecordingIsNoLoss) {
  std::string events = Event("cuda_runtime", "cudaLaunchKernel", 1, 30, 5, 7) + "," +
                       Event("kernel", "gemm", 20, 50, 30, 7);
  for (int i = 0; i < 4; ++i) events += "," + Event("kernel", "k", 20, i * 10, 10, i + 1);
  EXPECT_EQ(Judged(Kineto(events)).verdict(), Verdict::kDontTrust) << "most of it";
  std::string launched;
  for (int i = 20; i < 24; ++i) {
    launched += "," + Event("cuda_runtime", "cudaLaunchKernel", 1, 2 * i, 1, i) + "," +
                Event("kernel", "gemm", 20, 10 * i, 10, i);
  }
  const Health early = Judged(Kineto(events + launched));
  ASSERT_FALSE(early.reasons.empty());
  EXPECT_EQ(early.verdict(), Verdict::kUsable);
  EXPECT_EQ(early.reasons[0].name, "launched_before");
  EXPECT_EQ(early.reasons[0].text,
            "4 of 9 pieces of device work were launched before the recording began");
  const Health other = Judged(Kineto(events + "," + Event("kernel", "k", 21, 0, 10, 9) + "," +
                                     Event("kernel", "k", 20, 90, 10, 10)));
  const auto lost = std::ranges::find(other.reasons, "work_without_launch", &Health::Reason::name);
  ASSERT_NE(lost, other.reasons.end());
  EXPECT_EQ(lost->text, "2 of 7 pieces of device work have no call that launched them")
      << "of a stream with no launch, and after the first launch";
}

TEST(Health, LaunchesCapturedIntoAGraphRunNothing) {
  const std::string launched = Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, 7) + "," +
                               Event("kernel", "gemm", 20, 8, 100, 7);
  const std::string captured = "," + Event("cuda_runtime", "cudaLaunchKernel", 1, 20, 5, 8) + "," +
                               Event("cuda_runtime", "cudaLaunchKernel", 1, 30, 5, 9);
  const std::string begin = "," + Event("cuda_runtime", "cudaStreamBeginCapture", 1, 10, 5, 1);
  const std::string end = "," + Event("cuda_runtime", "cudaStreamEndCapture", 1, 40, 5, 2);
  const std::string after = "," + Event("cuda_runtime", "cudaLaunchKernel", 1, 50, 5, 10);
  const auto reasons = [&](const std::string& events) {
    Expected names = Names(Judged(Kineto(events)));
    std::erase(names, "graph_time");
    return names;
  };
  EXPECT_EQ(reasons(launched + captured), Expected{"launch_without_work"});
  EXPECT_EQ(reasons(launched + begin + captured + end), Expected{});
  EXPECT_EQ(reasons(launched + begin + captured), Expected{"launch_without_work"}) << "no end";
  EXPECT_EQ(reasons(launched + captured + end), Expected{"launch_without_work"}) << "no begin";
  const std::string elsewhere = "," + Event("cuda_runtime", "cudaStreamEndCapture", 2, 40, 5, 2);
  EXPECT_EQ(reasons(launched + begin + captured + elsewhere), Expected{"launch_without_work"});
  EXPECT_EQ(reasons(launched + begin + captured + end + after), Expected{"launch_without_work"});
}

TEST(Health, CollectivesThatAreKnownFromTheirCallsAlone) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kPyTorchEt);
  const auto add = [&](uint64_t id, const char* name) {
    NodeRow row{.source_id = id, .kind = NodeKind::kCollective, .place = Place::kHost};
    row.name = builder.Intern(name);
    builder.SetComm(builder.AddNode(row), {.type = CollectiveType::kAllReduce});
  };
  add(1, "gloo:all_reduce");
  add(2, "c10d::allreduce_");
  const Health health = Judged(builder.Finish().value());
  ASSERT_EQ(Names(health), Expected{"lost_labels"});
  EXPECT_EQ(
      health.reasons[0].text,
      "1 collective is known only from its call: the end of the communication was not recorded");
}

TEST(Health, OneOfAKindIsOne) {
  const Health health = Judged(Kineto(Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 1, 7) + "," +
                                      Event("kernel", "gemm", 20, 1, 30, 7) + "," +
                                      Event("cuda_runtime", "cudaLaunchKernel", 1, 40, 1, 8) + "," +
                                      Event("kernel", "gemm", 20, 50, 30, 9)));
  std::vector<std::string> texts;
  for (const auto& reason : health.reasons) {
    if (reason.name != "graph_time") texts.push_back(reason.text);
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{"1 of 2 pieces of device work has no call that launched it",
                                      "1 of 2 launches has no device work"}));
}

TEST(Health, KernelsThatSoundLikeCommunication) {
  const std::string launch = Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 1, 7) + ",";
  const auto judged = [&](const std::string& kernel) {
    return Judged(Kineto(launch + Event("kernel", kernel, 20, 1, 30, 7)));
  };
  const Health health = judged("void mine::fusedAllReduceNorm<4>(float*)");
  ASSERT_EQ(Names(health), Expected{"unread_communication"});
  EXPECT_EQ(health.reasons[0].text,
            "1 kernel counts as computation although the name suggests communication: "
            "'fusedAllReduceNorm<4>'");
  EXPECT_EQ(Names(judged("ncclDevKernel_AllReduce_Sum_f32_RING_LL")), Expected{});
}

TEST(Health, EventsOfUnknownCategories) {
  std::string events = Event("kernel_v9", "gemm", 20, 50, 30) + "," +
                       Event("kernel_v9", "gemm", 20, 80, 30) + "," +
                       Event("api", "launch", 1, 10, 5) +
                       R"J(,{"ph":"X","name":"x","pid":1,"tid":1,"ts":1,"dur":1})J";
  Health health = Judged(Kineto(events));
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust);
  EXPECT_EQ(Names(health), Expected{"unknown_categories"});
  EXPECT_EQ(health.reasons[0].text,
            "4 of 4 events have an unknown category ('cat') and are excluded from all figures: "
            "\"kernel_v9\", none, \"api\"");
  for (int i = 0; i < 100; ++i) events += "," + Event("cpu_op", "aten::mm", 1, 20 + i * 10, 10);
  health = Judged(Kineto(events));
  EXPECT_EQ(health.verdict(), Verdict::kUsable) << "few";
  EXPECT_EQ(Names(Judged(Kineto(R"J({"ph":"b","name":"x","pid":1,"id":1,"ts":1})J"))),
            Expected{"no_nodes"});
}

TEST(Health, AStreamRunsOneThingAtATime) {
  std::string events = Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, 1);
  for (int i = 0; i < 20; ++i) {
    events += "," + Event("kernel", "k", 20, 10 + i * 10, i == 3 ? 15 : 10, 1);
  }
  const Health health = Judged(Kineto(events));
  EXPECT_EQ(Names(health), Expected{"overlaps"}) << "the graph explains the times all the same";
  EXPECT_EQ(health.verdict(), Verdict::kUsable);
}

// Not only with the directly preceding one, which is over.
TEST(Health, WorkThatOverlapsAllThatFollows) {
  std::string events = Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, 1) + "," +
                       Event("kernel", "long", 20, 10, 200, 1);
  for (int i = 0; i < 20; ++i) events += "," + Event("kernel", "k", 20, 20 + i * 10, 5, 1);
  const Health health = Judged(Kineto(events));
  ASSERT_EQ(Names(health).front(), "overlaps");
  EXPECT_EQ(health.reasons[0].text.substr(0, 9), "19 of 21 ");
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust);
}

TEST(Health, DeviceWorkWithoutTimes) {
  constexpr int64_t kNow = 1'615'207'264'500'000;
  const auto judged = [&](int lost) {
    std::string events = Event("cpu_op", "a", 1, kNow, 400);
    for (int i = 0; i < 20; ++i) {
      events += "," + Event("cuda_runtime", "cudaLaunchKernel", 1, kNow + i * 20, 5, i + 1);
      events += "," + Event("kernel", "k", 20, i < lost ? 0 : kNow + 10 + i * 20, i < lost ? 0 : 10,
                            i + 1);
    }
    return Judged(Kineto(events));
  };
  EXPECT_EQ(judged(4).reasons.at(0).text,
            "4 of 20 pieces of device work have invalid times, which are treated as unknown");
  EXPECT_EQ(judged(4).verdict(), Verdict::kUsable);
  EXPECT_EQ(judged(6).verdict(), Verdict::kDontTrust);
}

TEST(Health, DevicesThatNoTableKnows) {
  const Health health =
      Judged(Kineto(R"J({"ph":"M","name":"process_name","pid":4,"args":{"name":"FPGA device 1"}},)J"
                    R"J({"ph":"X","name":"gemm","pid":4,"tid":1,"ts":1,"dur":2},)J" +
                    Event("cpu_op", "a", 1, 0, 400)));
  EXPECT_EQ(Names(health), (Expected{"unknown_categories", "unread_device"}));
  EXPECT_EQ(health.reasons[1].text,
            "device events of 'FPGA device 1' are not recognized: 1 event has neither a known "
            "category nor known arguments");
}

TEST(Health, KernelsThatWereLaunchedToBeginEarly) {
  const auto overlap = [](const std::string& call, const std::string& category) {
    const std::string launch = Event("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, 1);
    const std::string early = Event("cuda_runtime", call, 1, 5, 5, 2);
    return Names(Judged(Kineto(launch + "," + early + "," + Event("kernel", "k", 20, 10, 90, 1) +
                               "," + Event(category, "next", 20, 90, 40, 2))));
  };
  EXPECT_EQ(overlap("cudaLaunchKernelExC", "kernel"), Expected{});
  EXPECT_EQ(overlap("cuLaunchKernelEx", "kernel"), Expected{});
  EXPECT_EQ(overlap("cudaLaunchKernel", "kernel"), Expected{"overlaps"});
  EXPECT_EQ(overlap("cuLaunchKernelEx", "gpu_memcpy"), Expected{"overlaps"}) << "not kernels";
}

TEST(Health, AGapInWhichNothingRan) {
  EXPECT_EQ(Names(Judged(Kineto(Event("cpu_op", "a", 1, 0, 1000) + "," +
                                Event("cpu_op", "b", 1, 50'000, 1000)))),
            (Expected{"gap", "graph_time"}));
}

// 190 and 175 us of operators in 200.
TEST(Health, TheGraphAloneIsFarFromWhatWasRecorded) {
  const auto planted = [](int64_t end_us) {
    return Judged(
        Kineto(Event("cpu_op", "a", 1, 0, end_us) + "," + Event("cpu_op", "b", 1, 100, 100)));
  };
  Health health = planted(90);
  EXPECT_EQ(health.verdict(), Verdict::kGood);
  ASSERT_TRUE(health.graph_time);
  EXPECT_EQ(health.graph_time->recorded, Nanos{200'000});
  EXPECT_EQ(health.graph_time->simulated, Nanos{190'000});
  health = planted(75);
  ASSERT_EQ(Names(health), Expected{"graph_time"});
  EXPECT_EQ(health.verdict(), Verdict::kUsable);
  EXPECT_EQ(health.reasons[0].text,
            "dependencies explain 0.175 of 0.200 ms; 0.025 ms are gaps on host thread 1");
}

// If one of two operators has no time, the graph's time is unknown.
TEST(Health, TheTimeByTheGraphIsUnknown) {
  EXPECT_FALSE(Judged(Kineto(Event("user_annotation", "label", 1, 0, 10))).graph_time);
  TraceBuilder builder;
  NodeRow row;
  row.kind = NodeKind::kOperator;
  row.place = Place::kHost;
  row.start = Nanos{0};
  row.duration = Nanos{10};
  builder.AddNode(row);
  row.source_id = 1;
  row.duration.reset();
  builder.AddNode(row);
  EXPECT_FALSE(Judged(builder.Finish().value()).graph_time);
}

TEST(Health, StepsThatAreMissing) {
  EXPECT_EQ(Names(Judged(Kineto(Event("user_annotation", "ProfilerStep#3", 1, 0, 1000) + "," +
                                Event("user_annotation", "ProfilerStep#5", 1, 1000, 1000)))),
            Expected{"lost_steps"});
}

TEST(Health, WhatWasMetOnTheWayIsCarriedAlong) {
  TraceBuilder builder;
  NodeRow row;
  row.kind = NodeKind::kOperator;
  row.place = Place::kHost;
  for (row.source_id = 0; row.source_id < 10; ++row.source_id) builder.AddNode(row);
  builder.stats().Count(Stat::kTruncated);
  builder.stats().Count(Stat::kUnlinkedHost, 4);
  CarryStats(builder);
  TraceBuilder again;  // as if written and read: only the facts remain
  again.info() = builder.info();
  for (Extra& extra : again.info().extras) {
    extra = {.key = again.Intern(builder.text(extra.key)),
             .text = again.Intern(builder.text(extra.text))};
  }
  for (row.source_id = 0; row.source_id < 10; ++row.source_id) again.AddNode(row);
  const Health health = Judged(again.Finish().value());
  EXPECT_EQ(Names(health), (Expected{"host_link_rate", "truncated"}));
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust);
}

TEST(Health, TimelinesOfSimulatedJobsSayNothingOfLaunches) {
  EXPECT_EQ(Names(Judged(Kineto(Event("compute", "matmul", 1, 0, 10) + "," +
                                Event("kernel", "all_reduce of gradients", 2, 10, 10)))),
            (Expected{"unread_communication", "graph_time"}));
}

TEST(Health, IdsThatWereNotUnique) {
  TraceBuilder builder;
  NodeRow row;
  row.kind = NodeKind::kOperator;
  row.place = Place::kHost;
  builder.AddNode(row);
  builder.stats().Count(Stat::kRenumberedId, 2);
  const Health health = Judged(builder.Finish().value());
  EXPECT_EQ(Names(health), Expected{"renumbered_ids"});
  EXPECT_EQ(health.verdict(), Verdict::kUsable);
  EXPECT_EQ(health.reasons[0].text,
            "2 ids were not unique before renumbering: references may point to a wrong node");
}

TEST(Health, SimulationsThatDidNotComeToTheEnd) {
  const auto judged = [](bool is_simulated) {
    TraceBuilder builder;
    NodeRow row;
    row.kind = NodeKind::kCompute;
    row.place = Place::kDevice;
    for (row.source_id = 0; row.source_id < 10; ++row.source_id) {
      row.duration.reset();
      if (row.source_id < 8) row.duration = Nanos{5};
      builder.AddNode(row);
    }
    if (is_simulated) StateSimulated(builder);
    return Judged(builder.Finish().value());
  };
  EXPECT_EQ(Names(judged(false)), Expected{});
  const Health health = judged(true);
  EXPECT_EQ(Names(health), Expected{"unfinished_simulation"});
  EXPECT_EQ(health.reasons[0].text, "the simulation completed 8 of 10 nodes");
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust);
}

TEST(Health, ThePartsOfAJobKeepTheirNames) {
  Health job;
  Health part;
  part.reasons.push_back({Verdict::kUsable, "gap", "nothing ran"});
  job.Add(part, "rank 3");
  ASSERT_EQ(job.reasons.size(), 1u);
  EXPECT_EQ(job.reasons[0].text, "rank 3: nothing ran");
  job.Add(part, "rank 3");
  EXPECT_EQ(job.reasons.size(), 1u) << "another trace of the rank says the same";
  EXPECT_EQ(job.verdict(), Verdict::kUsable);
}

}  // namespace
}  // namespace etude
