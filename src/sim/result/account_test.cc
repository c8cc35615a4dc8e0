#include "src/sim/result/account.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace etude {
namespace {

// Each node depends on the previous one, unless it is `free`.
struct AccountNode {
  SimNode node;
  bool free = false;
};

SimRank AccountRank(const std::vector<AccountNode>& nodes, std::vector<int64_t> groups = {},
                    std::vector<int64_t> peers = {}) {
  SimProgram program;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    program.nodes.push_back(nodes[i].node);
    program.origin.push_back(NodeId::FromIndex(i));
    program.source_ids.push_back(i);
    program.waits.push_back(nodes[i].free || i == 0 ? 0 : 1);
    if (program.waits.back() != 0) edges.emplace_back(i - 1, i);
  }
  program.children = Csr<uint32_t>::Build(
      nodes.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return {.program = std::make_shared<const SimProgram>(std::move(program)),
          .groups = std::move(groups),
          .peers = std::move(peers)};
}

// Links of 1 byte/ns and 100 ns; all collectives are rings.
SimMachine AccountMachine(std::vector<int64_t> npus) {
  SimMachine machine;
  for (const int64_t count : npus) {
    machine.dims.push_back({.npus = count, .bandwidth = 1e9 / 1073741824.0, .latency = 100});
  }
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].resize(npus.size());
  }
  return machine;
}

SimNode AccountCollective(int64_t bytes, uint32_t group = 0) {
  return {.kind = NodeKind::kCollective,
          .collective = CollectiveType::kAllReduce,
          .group = group,
          .bytes = bytes};
}

SimAccount AccountFor(const SimMachine& machine, const SimWorkload& workload,
                      bool by_class = true) {
  const SimResult result = Simulate(machine, workload, {.by_class = by_class}).value();
  return AccountOf(workload, result, Arrivals(machine, workload, result));
}

// Messages of 500 bytes take 600 ns. Rank 1 reaches at 3,000 ns the all-reduce that rank 0 began at
// 1,000 ns, and sends at 3,010 and 3,020 ns. Rank 0 sends its second message at 3,620 ns, 10 ns
// after rank 1's first arrived; it arrives at 4,220 ns, and 10 ns later rank 1 is done.
TEST(Account, ALateRank) {
  const SimWorkload workload{
      .ranks = {AccountRank({{{.duration = 1000}}, {AccountCollective(1000)}}),
                AccountRank({{{.duration = 3000}}, {AccountCollective(1000)}})}};
  const SimAccount account = AccountFor(AccountMachine({2}), workload);
  EXPECT_EQ(account.step, 4230);
  const SimTimes& first = account.classes[0].times;
  EXPECT_EQ(account.classes[0].end, 3630);
  EXPECT_EQ(first.compute, 1000);
  EXPECT_EQ(first.late_wait, 2000);
  EXPECT_EQ(first.communication, 630);
  EXPECT_EQ(first.exposed_communication, 630);
  EXPECT_EQ(first.early, 600);
  EXPECT_EQ(first.idle(), 2600);
  const SimTimes& second = account.classes[1].times;
  EXPECT_EQ(second.compute, 3000);
  EXPECT_EQ(second.exposed_communication, 1230);
  EXPECT_EQ(second.idle(), 0);
  ASSERT_EQ(account.collectives.size(), 1u);
  EXPECT_EQ(account.collectives[0].count, 1u);
  EXPECT_EQ(account.collectives[0].members, 2);
  EXPECT_EQ(account.collectives[0].time, 3230);
  EXPECT_EQ(account.collectives[0].skew, 2000);
}

// The all-reduce, 2 · 600 + 3 · 10 ns, overlaps 500 ns of computation.
TEST(Account, CommunicationBesideComputation) {
  const SimRank rank = AccountRank({{{.duration = 500}}, {AccountCollective(1000), true}});
  const SimAccount account =
      AccountFor(AccountMachine({2}), {.ranks = std::vector<SimRank>(2, rank)});
  EXPECT_EQ(account.step, 1230);
  ASSERT_EQ(account.classes.size(), 1u);
  EXPECT_EQ(account.classes[0].ranks, 2);
  EXPECT_EQ(account.classes[0].times.communication, 1230);
  EXPECT_EQ(account.classes[0].times.exposed_communication, 730);
  EXPECT_EQ(account.classes[0].times.compute, 500);
  EXPECT_EQ(account.classes[0].times.idle(), 0);
}

// A message of 1,000 bytes takes 1,100 ns. Its receiver waits from 0 ns for 700 ns of computation,
// 300 ns of which overlap its own.
TEST(Account, AMessageThatIsSentLate) {
  const SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1000};
  const SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1000};
  const SimWorkload workload{
      .ranks = {AccountRank({{{.duration = 700}}, {send}}, {}, {1}),
                AccountRank({{{.duration = 300}}, {receive, true}}, {}, {0})}};
  const SimAccount account = AccountFor(AccountMachine({2}), workload);
  EXPECT_EQ(account.step, 1800);
  EXPECT_EQ(account.classes[0].times.exposed_communication, 1100);
  EXPECT_EQ(account.classes[0].times.idle(), 0);
  EXPECT_EQ(account.classes[1].times.compute, 300);
  EXPECT_EQ(account.classes[1].times.late_wait, 400);
  EXPECT_EQ(account.classes[1].times.exposed_communication, 1100);
}

// Tags are taken modulo 500,000,000.
TEST(Account, AMessageWithAnotherTagThatCountsTheSame) {
  const SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1000, .tag = 500'000'001};
  const SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1000, .tag = 1};
  const SimWorkload workload{.ranks = {AccountRank({{{.duration = 700}}, {send}}, {}, {1}),
                                       AccountRank({{receive}}, {}, {0})}};
  const SimAccount account = AccountFor(AccountMachine({2}), workload);
  EXPECT_EQ(account.step, 1800);
  EXPECT_EQ(account.classes[1].times.late_wait, 700);
  EXPECT_EQ(account.classes[1].times.exposed_communication, 1100);
}

// With rendezvous the sender waits for the receiver, whose control message of 8,192 bytes takes
// 8,292 ns.
TEST(Account, AReceiverThatComesLate) {
  const SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1000};
  const SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1000};
  const SimWorkload workload{.ranks = {AccountRank({{send}}, {}, {1}),
                                       AccountRank({{{.duration = 700}}, {receive}}, {}, {0})}};
  SimMachine machine = AccountMachine({2});
  machine.system.rendezvous = true;
  const SimAccount account = AccountFor(machine, workload);
  EXPECT_EQ(account.step, 700 + 8292 + 1100);
  EXPECT_EQ(account.classes[0].times.late_wait, 700);
  EXPECT_EQ(account.classes[0].times.exposed_communication, 8292 + 1100);
  EXPECT_EQ(account.classes[1].times.late_wait, 0);
}

// 1,000 ns on the device, overlapping 2,000 ns of remote memory; the host takes 1,500 ns, then 800
// ns.
TEST(Account, HostAndMemory) {
  SimMachine machine = AccountMachine({2});
  machine.memory = {.kind = RemoteMemoryKind::kPerNpu, .latency = 1000, .bandwidth = 1};
  const SimNode host{.on_host = true, .duration = 1500};
  const SimRank rank = AccountRank({{{.duration = 1000}},
                                    {{.kind = NodeKind::kMemLoad, .bytes = 1000}, true},
                                    {host, true},
                                    {{.on_host = true, .duration = 800}}});
  const SimAccount account = AccountFor(machine, {.ranks = std::vector<SimRank>(2, rank)});
  EXPECT_EQ(account.step, 2300);
  const SimTimes& times = account.classes[0].times;
  EXPECT_EQ(times.compute, 1000);
  EXPECT_EQ(times.memory, 2000);
  EXPECT_EQ(times.exposed_memory, 1000);
  EXPECT_EQ(times.host, 2300);
  EXPECT_EQ(times.host_wait, 300);
  EXPECT_EQ(times.idle(), 300);
}

// The ranks of both groups wait for their own late rank only. Along the second of two dimensions, 0
// meets 2 and 1 meets 3.
TEST(Account, WhoIsWaitedFor) {
  const auto rank = [](int64_t duration, int64_t group) {
    return AccountRank({{{.duration = duration}}, {AccountCollective(1000, 1)}}, {group});
  };
  const SimWorkload groups{.ranks = {rank(100, 1), rank(100, 2), rank(400, 1), rank(1000, 2)},
                           .groups = {{1, {0, 2}}, {2, {1, 3}}}};
  const SimAccount by_group = AccountFor(AccountMachine({4}), groups);
  EXPECT_EQ(by_group.classes[0].times.late_wait, 300);
  EXPECT_EQ(by_group.classes[1].times.late_wait, 900);
  ASSERT_EQ(by_group.collectives.size(), 1u);
  EXPECT_EQ(by_group.collectives[0].count, 2u);
  EXPECT_EQ(by_group.collectives[0].skew, 1200);
  EXPECT_TRUE(by_group.collectives[0].in_group);
  SimNode along = AccountCollective(1000);
  along.dims = 2;
  const auto of_dim = [&](int64_t duration) {
    return AccountRank({{{.duration = duration}}, {along}});
  };
  const SimAccount by_dim = AccountFor(
      AccountMachine({2, 2}), {.ranks = {of_dim(100), of_dim(100), of_dim(400), of_dim(1000)}});
  EXPECT_EQ(by_dim.classes[0].times.late_wait, 300);
  EXPECT_EQ(by_dim.classes[1].times.late_wait, 900);
  EXPECT_EQ(by_dim.collectives[0].count, 2u);
  EXPECT_EQ(by_dim.collectives[0].members, 2);
}

// The figures do not depend on which ranks are simulated.
TEST(Account, ClassesOfRanksCountAsTheirRanks) {
  SimWorkload workload;
  for (int64_t rank = 0; rank < 8; ++rank) {
    workload.groups[1 + rank / 4].push_back(rank);
    workload.groups[3 + rank % 4].push_back(rank);
    workload.ranks.push_back(AccountRank({{{.duration = rank < 4 ? 100 : 300}},
                                          {AccountCollective(4096, 1)},
                                          {{.duration = 50}},
                                          {AccountCollective(1024, 2)},
                                          {AccountCollective(512)}},
                                         {1 + rank / 4, 3 + rank % 4}));
  }
  const SimMachine machine = AccountMachine({4, 2});
  const SimAccount whole = AccountFor(machine, workload, false);
  const SimAccount classes = AccountFor(machine, workload);
  ASSERT_EQ(whole.classes.size(), 8u);
  ASSERT_EQ(classes.classes.size(), 2u);
  EXPECT_EQ(whole.step, classes.step);
  for (size_t rank = 0; rank < 8; ++rank) {
    const SimTimes& one = whole.classes[rank].times;
    const SimTimes& other = classes.classes[rank / 4].times;
    EXPECT_EQ(one.late_wait, other.late_wait);
    EXPECT_EQ(one.exposed_communication, other.exposed_communication);
    EXPECT_EQ(one.compute + one.exposed_communication + one.exposed_memory + one.idle(),
              whole.step);
  }
  ASSERT_EQ(whole.collectives.size(), 3u);
  ASSERT_EQ(classes.collectives.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(whole.collectives[i].count, classes.collectives[i].count);
    EXPECT_EQ(whole.collectives[i].time, classes.collectives[i].time);
    EXPECT_EQ(whole.collectives[i].skew, classes.collectives[i].skew);
  }
}

// Stopped after 1,000 ns: the message of 1,000 bytes, begun at 300 ns, is in flight.
TEST(Account, OfWhatWasSimulatedSoFar) {
  const SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1000};
  const SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1000};
  const SimWorkload workload{.ranks = {AccountRank({{{.duration = 300}}, {send}}, {}, {1}),
                                       AccountRank({{receive}}, {}, {0})}};
  const SimMachine machine = AccountMachine({2});
  SimResult result = Simulate(machine, workload, {.by_class = false}).value();
  result.stopped = true;
  result.time = 1000;
  result.ranks[0].ends[1] = -1;
  result.ranks[1].ends[0] = -1;
  result.ranks[0].finished = result.ranks[1].finished = false;
  const SimAccount account = AccountOf(workload, result, Arrivals(machine, workload, result));
  EXPECT_EQ(account.step, 1000);
  EXPECT_EQ(account.classes[0].times.compute, 300);
  EXPECT_EQ(account.classes[0].times.exposed_communication, 700);
  EXPECT_EQ(account.classes[1].times.late_wait, 300);
  EXPECT_EQ(account.classes[1].times.exposed_communication, 700);
}

// Unfinished nodes are waited for to the end.
TEST(Account, RanksThatWaitForEver) {
  const SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 8};
  const SimWorkload workload{.ranks = {AccountRank({{{.duration = 100}}, {receive}}, {}, {1}),
                                       AccountRank({{{.duration = 900}}})}};
  const SimAccount account = AccountFor(AccountMachine({2}), workload);
  EXPECT_EQ(account.step, 900);
  EXPECT_FALSE(account.classes[0].finished);
  EXPECT_EQ(account.classes[0].times.late_wait, 800);
  EXPECT_EQ(account.classes[0].times.early, 0);
  EXPECT_EQ(account.classes[0].times.other_wait, 0);
}

// A broadcast of 1,000 bytes from rank 0 at 100 ns: its message arrives at 1,210 ns and is handled
// at 1,220 ns. Rank 1 begins at 50 ns, at 700 ns, and at 5,000 ns, after the message's arrival.
TEST(Account, ABroadcastTakesTimeFromItsRootOn) {
  SimMachine machine = AccountMachine({2});
  machine.system.replay_broadcasts = false;
  for (const auto& [late, skew, time, moving] :
       {std::array<int64_t, 4>{50, 50, 1170, 1120}, std::array<int64_t, 4>{700, 600, 1120, 1120},
        std::array<int64_t, 4>{5000, 4900, 4910, 4910}}) {
    SimNode node = AccountCollective(1000);
    node.collective = CollectiveType::kBroadcast;
    const SimWorkload workload{.ranks = {AccountRank({{{.duration = 100}}, {node}}),
                                         AccountRank({{{.duration = late}}, {node}})}};
    const SimAccount account = AccountFor(machine, workload);
    ASSERT_EQ(account.collectives.size(), 1u);
    EXPECT_EQ(account.collectives[0].time, time);
    EXPECT_EQ(account.collectives[0].skew, skew);
    EXPECT_EQ(account.collectives[0].moving, moving);
  }
}

// The reverse: rank 0, the root, begins at 100 ns, or at 5,000 ns, after the arrival of rank 1's
// message.
TEST(Account, WhatGoesToARootTakesTimeFromTheOthersOn) {
  SimMachine machine = AccountMachine({2});
  machine.system.replay_broadcasts = false;
  for (const CollectiveType type : {CollectiveType::kReduce, CollectiveType::kGather}) {
    SimNode node = AccountCollective(1000);
    node.collective = type;
    const auto moving = [&](int64_t root, int64_t other) {
      const SimWorkload workload{.ranks = {AccountRank({{{.duration = root}}, {node}}),
                                           AccountRank({{{.duration = other}}, {node}})}};
      return AccountFor(machine, workload).collectives.at(0).moving;
    };
    const int64_t at_once = moving(100, 100);
    EXPECT_GE(at_once, 1110);
    EXPECT_EQ(moving(100, 700), at_once);
    EXPECT_GE(moving(5000, 700), 4300) << "what was there already has no bandwidth";
  }
}

// The same in groups, whose roots are positions: ranks 2 and 0, where rank 0 is late.
TEST(Account, ABroadcastOfAGroup) {
  SimMachine machine = AccountMachine({3});
  machine.system.replay_broadcasts = false;
  SimNode node = AccountCollective(1000, 1);
  node.collective = CollectiveType::kBroadcast;
  const SimWorkload workload{
      .ranks = {AccountRank({{{.duration = 400}}, {node}}, {1}), AccountRank({{{.duration = 10}}}),
                AccountRank({{node}}, {1})},
      .groups = {{1, {2, 0}}}};
  const SimAccount account = AccountFor(machine, workload);
  ASSERT_EQ(account.collectives.size(), 1u);
  EXPECT_EQ(account.collectives[0].time, 1120);
  EXPECT_EQ(account.collectives[0].skew, 400);
  EXPECT_EQ(account.collectives[0].moving, 1120);
}

// One of three ranks is early by 1 ns: the mean rank has computed nothing.
TEST(Account, TheMeanOfNothingIsNothing) {
  SimAccount account{.step = 100, .classes = {}, .collectives = {}};
  account.classes.push_back(
      {.ranks = 2, .end = 100, .times = {.communication = 100, .exposed_communication = 100}});
  account.classes.push_back(
      {.ranks = 1,
       .end = 99,
       .times = {.communication = 99, .exposed_communication = 99, .early = 1}});
  const SimClassAccount mean = MeanOf(account);
  EXPECT_EQ(mean.end, 99);
  EXPECT_EQ(mean.times.compute, 0);
  EXPECT_EQ(mean.times.exposed_communication, 100);
  EXPECT_EQ(mean.times.communication, 100);
  EXPECT_EQ(mean.times.early, 0);
}

// Exceeds the 53 bits of a double, and the sum over ranks exceeds them further.
TEST(Account, TheMeanOfLongTimesIsExact) {
  const int64_t step = kLongestSimulation;
  SimAccount account{.step = step, .classes = {}, .collectives = {}};
  account.classes.push_back(
      {.ranks = 3,
       .end = step,
       .times = {.communication = step - 2, .exposed_communication = step - 2, .late_wait = 2}});
  const SimClassAccount mean = MeanOf(account);
  EXPECT_EQ(mean.end, step);
  EXPECT_EQ(mean.times.compute, 0);
  EXPECT_EQ(mean.times.exposed_communication, step - 2);
  EXPECT_EQ(mean.times.late_wait, 2);
}

// An unfinished rank of a stopped simulation has no end.
TEST(Account, AnInterruptedSimulation) {
  const std::vector<AccountNode> many(40'000, {{.duration = 3}});
  const SimWorkload workload{.ranks = {AccountRank(many), AccountRank({{{.duration = 5}}})}};
  const SimMachine machine = AccountMachine({2});
  const std::atomic<bool> stop = true;
  RunContext context;
  context.stop = &stop;
  const SimResult result = Simulate(machine, workload, {.context = &context}).value();
  ASSERT_TRUE(result.stopped);
  const SimAccount account = AccountOf(workload, result, Arrivals(machine, workload, result));
  EXPECT_EQ(account.classes[0].end, std::nullopt);
  EXPECT_EQ(account.classes[1].end, 5);
  EXPECT_EQ(MeanOf(account).end, std::nullopt);
  EXPECT_EQ(account.step, result.time);
}

// 1 GB all-reduced by 4 ranks in 0.1 s: 10 GB/s, and 15 GB/s on the wire.
TEST(Account, MeansAreExactBeyondWhatADoubleHolds) {
  constexpr int64_t kLong = (int64_t{1} << 56) + 1;
  SimAccount account;
  account.step = kLong;
  account.classes = {{.ranks = 2, .end = kLong, .times = {.exposed_communication = kLong}},
                     {.ranks = 1, .end = kLong, .times = {.exposed_communication = kLong}}};
  const SimClassAccount mean = MeanOf(account);
  EXPECT_EQ(mean.end, kLong);
  EXPECT_EQ(mean.times.exposed_communication, kLong);
  EXPECT_EQ(mean.times.compute, 0);
}

TEST(Account, Bandwidths) {
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveType::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveType::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveType::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveType::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveType::kScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(AlgorithmBytes(CollectiveType::kScatter, 100, 4), 100);
  EXPECT_DOUBLE_EQ(AlgorithmBytes(CollectiveType::kGather, 100, 4), 400);
  EXPECT_DOUBLE_EQ(AlgorithmBytes(CollectiveType::kAllGather, 100, 4), 400);
  EXPECT_DOUBLE_EQ(AlgorithmBytes(CollectiveType::kReduceScatter, 100, 4), 100);
}

}  // namespace
}  // namespace etude
