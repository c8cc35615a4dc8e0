#include "src/sim/result/sim_path.h"

#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::MachineOf;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

SimMachine Ring(int64_t npus) {
  return MachineOf({{.npus = npus, .bandwidth = 50, .latency = 500}}, CollectiveAlgorithm::kRing);
}

std::string TextOf(const SimPath& path) {
  std::string text;
  for (const SimPath::Stretch& one : path.stretches) {
    text += std::string(Name(one.part)) + " " + std::to_string(one.rank) + ":" +
            (one.node == SimPath::Stretch::kNoNode ? "-" : std::to_string(one.node)) + " " +
            std::to_string(one.begin) + "-" + std::to_string(one.end) + " " +
            std::string(Name(one.cause)) + " " + std::to_string(one.held) + " " +
            std::to_string(one.awaited) + "\n";
  }
  return text;
}

int64_t PartOf(const SimPath& path, SimPart part) { return path.parts[static_cast<size_t>(part)]; }

// The device runs one computation at a time: the second one was ready since 0.
TEST(SimPath, ASlotThatIsTaken) {
  const SimWorkload workload{
      .ranks = {RankOf(
          ProgramOf({{.duration = 100}, {.duration = 200}, {.duration = 7}}, {{}, {}, {1}}))}};
  SimMachine machine = Ring(1);
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  EXPECT_EQ(TextOf(path),
            "compute 0:0 0-100 start 0 0\n"
            "compute 0:1 100-300 slot 100 0\n"
            "compute 0:2 300-307 dependency 0 0\n");
  EXPECT_EQ(path.length, 307);
  EXPECT_EQ(PartOf(path, SimPart::kCompute), 307);
}

// ---- components of collectives: links of 1 byte/ns and 100 ns, an endpoint delay of 10 ns

SimMachine Plain(NetworkShape shape, int64_t npus) {
  SimMachine machine =
      MachineOf({{.shape = shape, .npus = npus, .bandwidth = 1e9 / 1073741824.0, .latency = 100}},
                CollectiveAlgorithm::kRing);
  machine.system.splits = 1;
  machine.system.memory_bandwidth = 0;
  machine.system.replay_broadcasts = false;
  machine.system.order = StreamOrder::kFifo;
  return machine;
}
// Each rank computes for a time (0: none), and then runs `node`.
SimWorkload AllDo(const SimNode& node, const std::vector<int64_t>& befores) {
  SimWorkload workload;
  for (const int64_t before : befores) {
    workload.ranks.push_back(RankOf(before == 0
                                        ? ProgramOf({node}, {{}})
                                        : ProgramOf({{.duration = before}, node}, {{}, {0}})));
  }
  return workload;
}
struct Parts {
  int64_t latency = 0;
  int64_t transfer = 0;
  int64_t handling = 0;
  int64_t queue = 0;

  friend bool operator==(const Parts&, const Parts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Parts& parts) {
    return out << "latency " << parts.latency << " transfer " << parts.transfer << " handling "
               << parts.handling << " queue " << parts.queue;
  }
};
Parts PartsOf(const SimMachine& machine, const SimWorkload& workload) {
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  return {.latency = PartOf(path, SimPart::kCollectiveLatency),
          .transfer = PartOf(path, SimPart::kCollectiveTransfer),
          .handling = PartOf(path, SimPart::kCollectiveHandling),
          .queue = PartOf(path, SimPart::kCollectiveQueue)};
}
SimNode Reduce(int64_t bytes) { return CollectiveNode(CollectiveType::kAllReduce, bytes); }

// Two messages of 500 bytes one after the other, handled before, between and after.
TEST(SimPathCollectives, RingOfTwo) {
  EXPECT_EQ(PartsOf(Plain(NetworkShape::kRing, 2), AllDo(Reduce(1000), {0, 0})),
            (Parts{.latency = 200, .transfer = 1000, .handling = 30}));
}

// Six messages of 1,000 bytes; three of them are added, 3 · 20 ns at 50 GB/s.
TEST(SimPathCollectives, RingOfFour) {
  SimMachine machine = Plain(NetworkShape::kRing, 4);
  const SimWorkload workload = AllDo(Reduce(4000), {0, 0, 0, 0});
  const Parts plain{.latency = 600, .transfer = 6000, .handling = 70};
  EXPECT_EQ(PartsOf(machine, workload), plain);
  machine.congestion = true;
  EXPECT_EQ(PartsOf(machine, workload), plain);
  machine.system.memory_bandwidth = 50;
  EXPECT_EQ(PartsOf(machine, workload),
            (Parts{.latency = 600, .transfer = 6000, .handling = 70 + 180}));
}

// Two links each way, which with congestion accept a whole message before forwarding.
TEST(SimPathCollectives, Switch) {
  SimMachine machine = Plain(NetworkShape::kSwitch, 4);
  const SimWorkload workload = AllDo(Reduce(4000), {0, 0, 0, 0});
  EXPECT_EQ(PartsOf(machine, workload), (Parts{.latency = 1200, .transfer = 6000, .handling = 70}));
  machine.congestion = true;
  EXPECT_EQ(PartsOf(machine, workload),
            (Parts{.latency = 1200, .transfer = 12'000, .handling = 70}));
}

// Messages of 500 bytes need 500 ns and 75 ns more.
TEST(SimPathCollectives, ASlowLink) {
  SimMachine machine = Plain(NetworkShape::kRing, 2);
  machine.slow_links = {{.npu = 0, .other = 1, .share = 0.5, .latency = 75}};
  for (const bool congestion : {false, true}) {
    machine.congestion = congestion;
    EXPECT_EQ(PartsOf(machine, AllDo(Reduce(1000), {0, 0})),
              (Parts{.latency = 200, .transfer = 1000, .handling = 30, .queue = 2 * 575}));
  }
}

// Rank 0 has work after the collective that rank 1 begins late. Both messages of rank 1 are sent at
// its begin, because rank 0's message has arrived, and are handled at the same time. The path comes
// from rank 1; waiting for it is not part of the collective.
SimWorkload WithWorkBehind(int64_t late) {
  return {.ranks = {RankOf(ProgramOf({{.duration = 100}, Reduce(1000), {.duration = 2000}},
                                     {{}, {0}, {1}})),
                    RankOf(ProgramOf({{.duration = late}, Reduce(1000)}, {{}, {0}}))}};
}
TEST(SimPathCollectives, ALateRank) {
  const SimMachine machine = Plain(NetworkShape::kRing, 2);
  const SimWorkload workload = WithWorkBehind(4000);
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  EXPECT_EQ(TextOf(path),
            "compute 1:0 0-4000 start 0 0\n"
            "collective_latency 1:1 4000-4100 dependency 0 3900\n"
            "collective_transfer 1:1 4100-4600 dependency 0 0\n"
            "collective_handling 1:1 4600-4630 dependency 0 0\n"
            "compute 0:2 4630-6630 dependency 0 0\n");
  EXPECT_EQ(path.hops, 1u);
}
// A rank that arrives before it has to answer delays nobody.
TEST(SimPathCollectives, ARankThatIsLittleLate) {
  const SimMachine machine = Plain(NetworkShape::kRing, 2);
  const SimWorkload workload = WithWorkBehind(300);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 0:0 0-100 start 0 0\n"
            "collective_latency 0:1 100-300 dependency 0 0\n"
            "collective_transfer 0:1 300-1300 dependency 0 0\n"
            "collective_handling 0:1 1300-1330 dependency 0 0\n"
            "compute 0:2 1330-3330 dependency 0 0\n");
}

// Two chunks at a time over one link each way. The second chunk's first message waits 500 ns until
// the link has accepted the first chunk's first message. The first chunk's second message waits
// until 1,010 ns for that one, and the second chunk's second message, ready at 1,120 ns, until
// 1,510 ns.
TEST(SimPathCollectives, ChunksThatShareALink) {
  SimMachine machine = Plain(NetworkShape::kRing, 2);
  machine.congestion = true;
  machine.system.splits = 2;
  machine.system.active_chunks = 2;
  EXPECT_EQ(PartsOf(machine, AllDo(Reduce(2000), {0, 0})),
            (Parts{.latency = 200, .transfer = 1000, .handling = 30, .queue = 500 + 390}));
}

// A chunk that waited for a chunk of its own collective continues that chain. If it waited for
// another collective, the time counts as queueing.
TEST(SimPathCollectives, ChunksThatWaitForTheirTurn) {
  SimMachine machine = Plain(NetworkShape::kRing, 2);
  SimNode on_host = Reduce(1000);
  on_host.on_host = true;
  SimWorkload workload;
  for (int i = 0; i < 2; ++i) {
    workload.ranks.push_back(RankOf(ProgramOf({Reduce(1000), on_host}, {{}, {}})));
  }
  EXPECT_EQ(PartsOf(machine, workload),
            (Parts{.latency = 200, .transfer = 1000, .handling = 30, .queue = 1230}));
  machine.system.splits = 2;
  EXPECT_EQ(PartsOf(machine, AllDo(Reduce(2000), {0, 0})),
            (Parts{.latency = 400, .transfer = 2000, .handling = 60}));
}

// The control message of 8,192 bytes is not part of the collective's own messages.
TEST(SimPathCollectives, Rendezvous) {
  SimMachine machine = Plain(NetworkShape::kRing, 2);
  machine.system.rendezvous = true;
  EXPECT_EQ(PartsOf(machine, AllDo(Reduce(1000), {0, 0})),
            (Parts{.latency = 200, .transfer = 1000, .handling = 30, .queue = 2 * 8292}));
}

// Messages of a broadcast come from the root, even if others begin later. A rank that begins after
// its message's arrival is delayed by itself only.
TEST(SimPathCollectives, ABroadcastComesFromItsRoot) {
  const SimMachine machine = Plain(NetworkShape::kRing, 2);
  const SimNode broadcast = CollectiveNode(CollectiveType::kBroadcast, 500);
  for (const auto& [before, text] :
       {std::pair(100,
                  "collective_latency 0:0 0-100 start 0 0\n"
                  "collective_transfer 0:0 100-600 dependency 0 0\n"
                  "collective_handling 0:0 600-620 dependency 0 0\n"),
        std::pair(700,
                  "compute 1:0 0-700 start 0 0\n"
                  "collective_handling 1:1 700-710 dependency 0 0\n")}) {
    const SimWorkload workload = AllDo(broadcast, {0, before});
    const SimResult result = Simulate(machine, workload).value();
    EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)), text);
  }
}

// All algorithms, compared with their closed forms.
TEST(SimPathCollectives, Algorithms) {
  SimMachine machine = Plain(NetworkShape::kFullyConnected, 4);
  const auto with = [&](CollectiveAlgorithm algorithm) {
    machine.system.algorithms[CollectiveType::kAllReduce] = {{.algorithm = algorithm}};
    return PartsOf(machine, AllDo(Reduce(4000), {0, 0, 0, 0}));
  };
  // Direct exchange, twice.
  EXPECT_EQ(with(CollectiveAlgorithm::kDirect),
            (Parts{.latency = 200, .transfer = 2000, .handling = 30}));
  // 2,000 bytes, 1,000, and back.
  EXPECT_EQ(with(CollectiveAlgorithm::kHalvingDoubling),
            (Parts{.latency = 400, .transfer = 6000, .handling = 50}));
  // Two links up from a leaf to the root, and back down. The root and its child handle messages on
  // the way up; the child and the leaf on the way down.
  EXPECT_EQ(with(CollectiveAlgorithm::kDoubleBinaryTree),
            (Parts{.latency = 400, .transfer = 16'000, .handling = 50}));
  const auto own = [&](CollectiveType type) {
    return PartsOf(machine, AllDo(CollectiveNode(type, 1000), {0, 0, 0, 0}));
  };
  EXPECT_EQ(own(CollectiveType::kBroadcast),
            (Parts{.latency = 200, .transfer = 2000, .handling = 30}));
  EXPECT_EQ(own(CollectiveType::kReduce),
            (Parts{.latency = 200, .transfer = 2000, .handling = 30}));
  EXPECT_EQ(own(CollectiveType::kBarrier), (Parts{.latency = 200, .transfer = 0, .handling = 30}));
}

// An all-reduce along the first dimension joins ranks 0 and 1, and separately ranks 2 and 3. The
// latter begin last, but do not delay the former.
TEST(SimPath, CollectivesOfSomeDimensions) {
  const SimMachine machine = MachineOf(
      {{.npus = 2, .bandwidth = 50, .latency = 500}, {.npus = 2, .bandwidth = 50, .latency = 500}},
      CollectiveAlgorithm::kRing);
  SimNode reduce = CollectiveNode(CollectiveType::kAllReduce, 1 << 20);
  reduce.dims = 1;
  const auto rank = [&](int64_t before, int64_t behind) {
    return RankOf(ProgramOf({{.duration = before}, reduce, {.duration = behind}}, {{}, {0}, {1}}));
  };
  const SimWorkload workload{
      .ranks = {rank(100, 900'000), rank(50'000, 1), rank(60'000, 1), rank(70'000, 1)}};
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  ASSERT_EQ(path.stretches.size(), 5u);
  EXPECT_EQ(path.stretches[1].rank, 1);
  EXPECT_EQ(path.stretches[1].begin, 50'000);
  EXPECT_EQ(path.stretches[1].awaited, 49'900);
}

// 1 MiB at 50 GiB/s takes 19,531 ns, plus 500 ns of link latency.
SimWorkload Message(int64_t before_receive) {
  return {.ranks = {RankOf(ProgramOf({{.duration = 10},
                                      {.kind = NodeKind::kSend, .peer = 0, .bytes = 1 << 20}},
                                     {{}, {0}}),
                           {}, {1}),
                    RankOf(ProgramOf({{.duration = before_receive},
                                      {.kind = NodeKind::kRecv, .peer = 0, .bytes = 1 << 20},
                                      {.duration = 5}},
                                     {{}, {0}, {1}}),
                           {}, {0})}};
}
TEST(SimPath, MessagesAreLatencyAndTransfer) {
  const SimMachine machine = Ring(2);
  const SimWorkload workload = Message(30);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 0:0 0-10 start 0 0\n"
            "latency 0:1 10-510 dependency 0 0\n"
            "transfer 0:1 510-20041 dependency 0 0\n"
            "compute 1:2 20041-20046 dependency 0 0\n");
}
TEST(SimPath, AReceiverThatComesLateNeedsNoTransfer) {
  const SimMachine machine = Ring(2);
  const SimWorkload workload = Message(50'000);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 1:0 0-50000 start 0 0\n"
            "compute 1:2 50000-50005 dependency 0 0\n");
}

// Two messages over one link: the second waits for the first one's bytes.
TEST(SimPath, ALinkThatIsTaken) {
  SimMachine machine = MachineOf(
      {{.shape = NetworkShape::kFullyConnected, .npus = 2, .bandwidth = 50, .latency = 500}},
      CollectiveAlgorithm::kRing);
  machine.congestion = true;
  SimNode from_host{.kind = NodeKind::kSend, .on_host = true, .peer = 0, .bytes = 1 << 20};
  SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 1 << 20};
  SimNode receive{.kind = NodeKind::kRecv, .peer = 0, .bytes = 1 << 20};
  const SimWorkload workload{.ranks = {RankOf(ProgramOf({from_host, send}, {{}, {}}), {}, {1}),
                                       RankOf(ProgramOf({receive, receive}, {{}, {}}), {}, {0})}};
  const SimResult result = Simulate(machine, workload).value();
  const SimPath path = FindSimPath(machine, workload, result);
  EXPECT_EQ(path.length, 19'531 + 20'031);
  EXPECT_EQ(PartOf(path, SimPart::kQueue), 19'531);
  EXPECT_EQ(PartOf(path, SimPart::kLatency), 500);
  EXPECT_EQ(PartOf(path, SimPart::kTransfer), 19'531);
}

// Nodes without work free others at the rank's next completion.
TEST(SimPath, BehindNodesWithoutWork) {
  const SimWorkload workload{
      .ranks = {RankOf(ProgramOf(
          {{.kind = NodeKind::kMetadata}, {.duration = 40}, {.on_host = true, .duration = 9}},
          {{}, {}, {0}}))}};
  const SimMachine machine = Ring(1);
  const SimResult result = Simulate(machine, workload).value();
  EXPECT_EQ(TextOf(FindSimPath(machine, workload, result)),
            "compute 0:1 0-40 start 0 0\n"
            "host 0:2 40-49 freed 40 0\n");
}

// The stretches of random jobs are contiguous, lie within their nodes, and cover all of the time.
TEST(SimPath, AddsUpToTheWhole) {
  std::mt19937 random(7);
  uint64_t hops = 0;
  for (int round = 0; round < 60; ++round) {
    SimMachine machine = Ring(4);
    machine.congestion = round % 3 == 0;
    machine.system.rendezvous = round % 5 == 0;
    SimWorkload workload;
    const size_t count = 3 + random() % 8;
    std::vector<int> kinds;
    for (size_t i = 0; i < count; ++i) kinds.push_back(static_cast<int>(random() % 4));
    for (int64_t rank = 0; rank < 4; ++rank) {
      std::vector<SimNode> nodes;
      std::vector<std::vector<uint32_t>> befores;
      for (uint32_t i = 0; i < count; ++i) {
        SimNode node{.on_host = random() % 4 == 0,
                     .duration = 1 + static_cast<int>(random() % 999)};
        if (kinds[i] == 1) node = CollectiveNode(CollectiveType::kAllReduce, 4096);
        if (kinds[i] == 2) {
          node = {
              .kind = rank % 2 == 0 ? NodeKind::kSend : NodeKind::kRecv, .peer = 0, .bytes = 8192};
        }
        nodes.push_back(node);
        befores.emplace_back();
        for (uint32_t j = 0; j < i; ++j) {
          const bool both = kinds[i] > 0 && kinds[j] > 0 && kinds[i] < 3 && kinds[j] < 3;
          if (both || random() % 3 == 0) befores.back().push_back(j);
        }
      }
      workload.ranks.push_back(RankOf(ProgramOf(std::move(nodes), befores), {}, {rank ^ 1}));
    }
    const SimResult result = Simulate(machine, workload).value();
    const SimPath path = FindSimPath(machine, workload, result);
    int64_t last_end = 0;
    int64_t latest = 0;
    for (const SimRankResult& rank : result.ranks) {
      ASSERT_TRUE(rank.finished);
      latest = std::max(latest, rank.wall);
    }
    ASSERT_EQ(path.length, latest);
    int64_t sum = 0;
    for (const int64_t part : path.parts) sum += part;
    ASSERT_EQ(sum, latest);
    for (const SimPath::Stretch& one : path.stretches) {
      ASSERT_EQ(one.begin, last_end) << round;
      ASSERT_LT(one.begin, one.end) << round;
      last_end = one.end;
      ASSERT_NE(one.part, SimPart::kWait) << round;
      ASSERT_GE(one.begin, result.OfRank(one.rank).begins[one.node]) << round;
      ASSERT_LE(one.end, result.OfRank(one.rank).ends[one.node]) << round;
    }
    ASSERT_EQ(last_end, latest);
    hops += path.hops;
  }
  EXPECT_GT(hops, 10u);
}

}  // namespace
}  // namespace etude
