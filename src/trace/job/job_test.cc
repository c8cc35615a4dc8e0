#include "src/trace/job/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/job/test_job.h"

namespace etude {
namespace {

using testing_job::TwoStages;

TEST(Job, GivesEachRankItsTrace) {
  const Job job = TwoStages();
  ASSERT_TRUE(CheckJob(job).has_value()) << CheckJob(job).error().message;
  EXPECT_EQ(job.rank_count(), 4);
  const Trace sender = TraceOfRank(job, 1).value();
  EXPECT_EQ(sender.info().rank, 1);
  EXPECT_EQ(sender.name(NodeId(1)), "to 3");
  const Comm& send = *sender.comm(NodeId(1));
  EXPECT_EQ(send.src, 1);
  EXPECT_EQ(send.dst, 3);
  EXPECT_EQ(send.tag, 5);
  EXPECT_EQ(send.bytes, Bytes{64});
  EXPECT_EQ(send.type, CollectiveType::kUnknown);
  const Trace receiver = TraceOfRank(job, 3).value();
  EXPECT_EQ(receiver.comm(NodeId(0))->src, 1);
  EXPECT_EQ(receiver.comm(NodeId(0))->dst, std::nullopt);
  const Comm& reduce = *receiver.comm(NodeId(1));
  EXPECT_EQ(receiver.text(reduce.group), "8");
  EXPECT_EQ(reduce.type, CollectiveType::kAllReduce);
  EXPECT_EQ(reduce.bytes, Bytes{1024});
  ASSERT_EQ(receiver.process_groups().size(), 1u);
  const auto ranks = receiver.ints(receiver.process_groups()[0].ranks);
  EXPECT_EQ(std::vector<int64_t>(ranks.begin(), ranks.end()), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(TraceOfRank(job, 4).error().message,
            "found no trace of rank 4 in a job with traces of 4 ranks");
}

TEST(Job, EventsCanStandInPrograms) {
  const Job job = TwoStages();
  const Trace with = WithEvents(ClassEvents(job)[0], job.classes[0].program).value();
  EXPECT_EQ(with.comm(NodeId(2))->type, CollectiveType::kAllReduce);
  EXPECT_EQ(with.text(with.comm(NodeId(2))->group), "@0");
  EXPECT_TRUE(WithoutEvents(ClassEvents(job)[0], with).value().SameContent(job.classes[0].program));
}

TEST(Job, EachPartIsAmongTheEventsOfItsClassByNode) {
  Job job = TwoStages();
  std::ranges::reverse(job.events);
  job.events[0].parts.push_back({.rank_class = 7, .node = NodeId(0)});  // unknown class
  const ClassEvents events(job);
  ASSERT_EQ(events[0].size(), 2u);
  EXPECT_EQ(events[0][0].node, NodeId(1));
  EXPECT_TRUE(events[0][0].event->is_message);
  EXPECT_EQ(events[0][0].part, &job.events[1].parts[0]);
  EXPECT_EQ(events[0][1].node, NodeId(2));
  EXPECT_EQ(events[0][1].event, &job.events[0]);
  ASSERT_EQ(events[1].size(), 2u);
  EXPECT_EQ(events[1][0].part->rank_class, 1u);
  EXPECT_TRUE(events[7].empty());
}

TEST(Job, RefusesWhatDoesNotFitTogether) {
  const auto fault = [](const std::function<void(Job&)>& change) {
    Job job = TwoStages();
    change(job);
    const Status status = CheckJob(job);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(fault([](Job& job) { job.classes[1].ranks = RankSet::Below(2); }),
            "found rank 0 in two classes, expected it in one");
  EXPECT_EQ(fault([](Job& job) { job.classes[1].ranks = RankSet::Of(std::vector<int64_t>{9}); }),
            "class 1: found rank 9, expected ranks of the mesh of 4");
  EXPECT_EQ(fault([](Job& job) { job.events[0].parts.pop_back(); }),
            "communication 0: rank 0 sends to rank 2, which does not receive");
  EXPECT_EQ(fault([](Job& job) { job.events[0].parts.erase(job.events[0].parts.begin()); }),
            "communication 0: rank 2 receives from rank 0, which does not send");
  EXPECT_EQ(fault([](Job& job) { std::swap(job.events[0], job.events[1]); }),
            "class 0: node 3 of communication 0 waits for communication 1, expected those that "
            "come before");
  EXPECT_EQ(fault([](Job& job) {
              job.group_kinds[0].axes = AxisSet{3};
              job.events[1].parts.pop_back();
            }),
            "communication 1: found no part of rank 2, which is in group '7'");
  EXPECT_EQ(fault([](Job& job) { job.events[1].parts[1].node = NodeId(0); }),
            "communication 1: found node 1 of class 1, which is part of communication 0 already");
  EXPECT_EQ(fault([](Job& job) { job.events[0].is_message = false; }),
            "communication 0: found node 2 of class 0, a send, expected a collective");
  EXPECT_EQ(fault([](Job& job) { job.events[0].parts[0].node = NodeId(77); }),
            "communication 0: found unknown node 77 of class 0");
  EXPECT_EQ(fault([](Job& job) { job.classes[0].groups[0].kind = 3; }),
            "class 0: found kind 3 of groups, expected 0 to 0");
}

TEST(Route, NumbersPartners) {
  const Mesh mesh = Mesh::Make({{"a", 2}, {"b", 3}}).value();
  const Route gather = {.shift = {}, .pairs = {{1, 0}, {2, 0}, {3, 0}}};
  EXPECT_EQ(gather.ReceiverOf(mesh, 2, 0), 0);
  EXPECT_EQ(gather.SenderTo(mesh, 0, 2), 3);
  EXPECT_EQ(gather.SenderTo(mesh, 0, 3), std::nullopt);
  EXPECT_EQ(gather.ReceiverOf(mesh, 0, 0), std::nullopt);
  const Route next = {.shift = {0, 1}, .pairs = {}};
  EXPECT_EQ(next.ReceiverOf(mesh, 5, 0), 1);
  EXPECT_EQ(next.SenderTo(mesh, 1, 0), 5);
}

TEST(Job, NamesOfGroups) {
  EXPECT_EQ(GroupOfName("@12"), 12u);
  EXPECT_EQ(NameOfGroup(12), "@12");
  for (const char* name : {"", "@", "12", "@1x", "@-1", "@99999999999999999999999"}) {
    EXPECT_EQ(GroupOfName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace etude
