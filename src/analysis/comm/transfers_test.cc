#include "src/analysis/comm/transfers.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// The trace of a rank on a CPU: calls of all-reduces with their labels on another thread.
class RankSketch {
 public:
  RankSketch() { builder_.info().SetFormat(TraceFormat::kNative); }

  void AllReduce(int64_t call, int64_t issued, int64_t begin, int64_t end) {
    const NodeId issuer = Add("c10d::allreduce_", NodeKind::kOperator, "main", call, issued);
    const NodeId label = Add("gloo:all_reduce", NodeKind::kCollective, "gloo", begin, end);
    builder_.AddDep(label, issuer, DepKind::kData);
    Comm comm;
    comm.type = CollectiveType::kAllReduce;
    comm.bytes = Bytes{64};
    builder_.SetComm(label, comm);
  }
  void Message(NodeKind kind, int64_t peer, int64_t begin, int64_t end) {
    const bool sends = kind == NodeKind::kSend;
    const NodeId label = Add(sends ? "gloo:send" : "gloo:recv", kind, "main", begin, end);
    Comm comm;
    comm.bytes = Bytes{64};
    (sends ? comm.dst : comm.src) = peer;
    builder_.SetComm(label, comm);
  }

  Trace Finish(int64_t rank) {
    builder_.info().rank = rank;
    builder_.info().world_size = 2;
    return builder_.Finish().value();
  }

 private:
  NodeId Add(const char* name, NodeKind kind, const char* thread, int64_t begin, int64_t end) {
    return builder_.AddNode({.source_id = next_++,
                             .kind = kind,
                             .place = Place::kHost,
                             .name = builder_.Intern(name),
                             .lane = builder_.InternLane({.thread = builder_.Intern(thread)}),
                             .start = Nanos{begin},
                             .duration = Nanos{end - begin}});
  }

  TraceBuilder builder_;
  uint64_t next_ = 1;
};

std::vector<std::vector<std::optional<Nanos>>> TimesOf(std::vector<Trace> traces) {
  std::vector<CommLog> logs;
  for (size_t i = 0; i < traces.size(); ++i) {
    logs.push_back(ReadCommLog(traces[i], static_cast<int64_t>(i)));
  }
  return FindTransfers(traces, logs, MatchComms(logs)).times;
}

// Rank 1's clock is 1,000 ahead. In progress from the end of the call; the second all-reduce of a
// rank from the end of the first one. First: 40 of rank 1 is last, ends at 100 and 104. Second:
// issued at 60 and 70, so from 104 on; ends at 130 on both. Third: 250 of rank 0 is last, so that
// rank 1 took 50 of its 80.
TEST(Transfers, AreWithoutTheWaitForOthers) {
  RankSketch first;
  first.AllReduce(10, 20, 25, 100);
  first.AllReduce(50, 60, 65, 130);
  first.AllReduce(240, 250, 255, 300);
  RankSketch second;
  second.AllReduce(1030, 1040, 1045, 1104);
  second.AllReduce(1060, 1070, 1075, 1130);
  second.AllReduce(1210, 1220, 1225, 1300);
  std::vector<Trace> traces;
  traces.push_back(first.Finish(0));
  traces.push_back(second.Finish(1));
  const auto times = TimesOf(std::move(traces));
  using Times = std::vector<std::optional<Nanos>>;
  EXPECT_EQ(times[0], (Times{Nanos{60}, Nanos{26}, Nanos{50}}));
  EXPECT_EQ(times[1], (Times{Nanos{64}, Nanos{26}, Nanos{50}}));
}

// Collectives give the clocks; rank 1's is 7,000 ahead. The receive begins at 200, after the send
// at 150: it takes 50. The program waits for the send until 400, which was done earlier.
TEST(Transfers, AReceiveEndsTheTimeOfItsSend) {
  RankSketch sender;
  for (const int64_t begin : {0, 40, 80})
    sender.AllReduce(begin, begin + 10, begin + 15, begin + 30);
  sender.Message(NodeKind::kSend, 1, 150, 400);
  RankSketch receiver;
  for (const int64_t begin : {7000, 7040, 7080}) {
    receiver.AllReduce(begin, begin + 10, begin + 15, begin + 30);
  }
  receiver.Message(NodeKind::kRecv, 0, 7200, 7250);
  std::vector<Trace> traces;
  traces.push_back(sender.Finish(0));
  traces.push_back(receiver.Finish(1));
  const auto times = TimesOf(std::move(traces));
  EXPECT_EQ(times[0][3], Nanos{50});
  EXPECT_EQ(times[1][3], Nanos{50});
}

// Messages alone give no clocks: the shorter of both durations.
TEST(Transfers, WithoutClocksTheShortestDurationCounts) {
  RankSketch sender;
  sender.Message(NodeKind::kSend, 1, 150, 180);
  RankSketch receiver;
  receiver.Message(NodeKind::kRecv, 0, 7000, 7200);
  std::vector<Trace> traces;
  traces.push_back(sender.Finish(0));
  traces.push_back(receiver.Finish(1));
  const auto times = TimesOf(std::move(traces));
  EXPECT_EQ(times[0][0], Nanos{30});
  EXPECT_EQ(times[1][0], Nanos{30});
}

TEST(Transfers, AMemberWithoutATraceLeavesTheTimeUnknown) {
  RankSketch only;
  only.AllReduce(0, 10, 15, 100);
  std::vector<Trace> traces;
  traces.push_back(only.Finish(0));
  EXPECT_EQ(TimesOf(std::move(traces))[0][0], std::nullopt);
}

}  // namespace
}  // namespace etude
