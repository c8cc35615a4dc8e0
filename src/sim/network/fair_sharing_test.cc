#include "src/sim/network/fair_sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"
#include "src/sim/network/network_graph.h"

namespace etude {
namespace {

using Paths = std::vector<std::vector<uint32_t>>;

struct TestFlow {
  uint32_t path = 0;
  double start = 0;
  double bytes = 0;
};

// Random links, paths and flows. Many flows share paths, sizes and start times.
struct RandomCase {
  std::vector<double> capacities;
  Paths paths;
  std::vector<FairSharing::Order> orders;  // of the paths
  std::vector<TestFlow> flows;

  explicit RandomCase(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t count) { return static_cast<uint32_t>(random() % count); };
    const uint32_t links = 1 + below(12);
    const bool alike = below(3) == 0;
    for (uint32_t i = 0; i < links; ++i) {
      capacities.push_back(alike ? 10 : 1 + static_cast<double>(below(1000)) / 10);
    }
    const uint32_t path_count = 1 + below(15);
    for (uint32_t i = 0; i < path_count; ++i) {
      std::vector<uint32_t> all(links);
      for (uint32_t j = 0; j < links; ++j) all[j] = j;
      std::ranges::shuffle(all, random);
      all.resize(1 + below(std::min<uint32_t>(links, 5)));
      paths.push_back(all);
      using enum FairSharing::Order;
      orders.push_back(below(3) == 0 ? kInOrder : kAtOnce);
    }
    const uint32_t flow_count = 1 + below(40);
    for (uint32_t i = 0; i < flow_count; ++i) {
      flows.push_back({.path = below(path_count),
                       .start = 10.0 * below(12),
                       .bytes = below(2) == 0 ? 1000 : 1 + static_cast<double>(below(100000)) / 7});
    }
    std::ranges::stable_sort(flows, {}, &TestFlow::start);
  }

  // Messages between random NPUs of a network, over its routes.
  RandomCase(const NetworkGraph& network, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t count) { return random() % count; };
    for (const NetworkLink& link : network.links()) capacities.push_back(link.rate());
    NetworkRoutes routes(network);
    std::map<std::vector<uint32_t>, uint32_t> known;
    const auto npus = static_cast<uint64_t>(network.npus());
    const uint64_t flow_count = 1 + below(60);
    while (flows.size() < flow_count) {
      const auto from = static_cast<int64_t>(below(npus));
      const auto to = static_cast<int64_t>(below(npus));
      if (from == to) continue;
      std::vector<uint32_t> links;
      routes.Find(from, to, nullptr, links);
      const auto [path, is_new] = known.emplace(links, static_cast<uint32_t>(paths.size()));
      if (is_new) {
        paths.push_back(links);
        orders.push_back(FairSharing::Order::kInOrder);  // as messages of a connection
      }
      flows.push_back({.path = path->second,
                       .start = 1000.0 * static_cast<double>(below(10)),
                       .bytes = below(2) == 0 ? 1e6 : 1 + static_cast<double>(below(1'000'000))});
    }
    std::ranges::stable_sort(flows, {}, &TestFlow::start);
  }

  void AddPaths(FairSharing& sharing) const {
    for (size_t i = 0; i < paths.size(); ++i) sharing.AddPath(paths[i], {}, orders[i]);
  }
};

// Each flow has a saturated link on which no flow is faster, and no link carries more than its
// capacity.
void ExpectMaxMin(FairSharing& sharing) {
  std::vector<double> used(sharing.link_count());
  std::vector<double> fastest(sharing.link_count());
  for (uint32_t path = 0; path < sharing.path_count(); ++path) {
    const double rate = sharing.RateOf(path);
    const auto links = sharing.LinksOf(path);
    for (size_t hop = 0; hop < links.size(); ++hop) {
      used[links[hop]] += rate * sharing.FlowsOn(path) * sharing.WeightsOf(path)[hop];
      fastest[links[hop]] = std::max(fastest[links[hop]], rate);
    }
  }
  for (uint32_t link = 0; link < used.size(); ++link) {
    EXPECT_LE(used[link], sharing.CapacityOf(link) * (1 + 1e-9));
  }
  for (uint32_t path = 0; path < sharing.path_count(); ++path) {
    if (sharing.FlowsOn(path) == 0) continue;
    const double rate = sharing.RateOf(path);
    EXPECT_TRUE(std::ranges::any_of(sharing.LinksOf(path),
                                    [&](uint32_t link) {
                                      return used[link] >= sharing.CapacityOf(link) * (1 - 1e-9) &&
                                             fastest[link] <= rate * (1 + 1e-9);
                                    }))
        << "path " << path;
  }
}

// Ends of flows by a plain simulation: at each start and end, the rates of all flows grow together
// in steps, one saturated link at a time.
std::vector<double> PlainEnds(const RandomCase& one) {
  struct Active {
    size_t flow = 0;
    double left = 0;
    double rate = 0;
    bool fixed = false;
  };
  std::vector<Active> active;
  std::vector<double> ends(one.flows.size());
  double now = 0;
  size_t next = 0;
  while (next < one.flows.size() || !active.empty()) {
    std::set<uint32_t> busy;  // paths in order
    for (Active& flow : active) {
      const uint32_t path = one.flows[flow.flow].path;
      flow.rate = 0;
      flow.fixed = one.orders[path] == FairSharing::Order::kInOrder && !busy.insert(path).second;
    }
    std::vector<double> left = one.capacities;
    while (std::ranges::any_of(active, [](const Active& flow) { return !flow.fixed; })) {
      std::vector<int> open(left.size());
      for (const Active& flow : active) {
        if (flow.fixed) continue;
        for (const uint32_t link : one.paths[one.flows[flow.flow].path]) ++open[link];
      }
      double step = std::numeric_limits<double>::infinity();
      size_t full = 0;
      for (size_t link = 0; link < left.size(); ++link) {
        if (open[link] == 0 || left[link] / open[link] >= step) continue;
        step = left[link] / open[link];
        full = link;
      }
      for (size_t link = 0; link < left.size(); ++link) left[link] -= step * open[link];
      left[full] = 0;
      for (Active& flow : active) {
        if (flow.fixed) continue;
        flow.rate += step;
        for (const uint32_t link : one.paths[one.flows[flow.flow].path]) {
          flow.fixed = flow.fixed || left[link] <= one.capacities[link] * 1e-12;
        }
      }
    }
    double until = std::numeric_limits<double>::infinity();
    if (next < one.flows.size()) until = one.flows[next].start;
    for (const Active& flow : active) {
      if (flow.rate > 0) until = std::min(until, now + flow.left / flow.rate);
    }
    for (Active& flow : active) flow.left -= flow.rate * (until - now);
    now = until;
    std::erase_if(active, [&](const Active& flow) {
      if (flow.left > 1e-9 * one.flows[flow.flow].bytes) return false;
      ends[flow.flow] = now;
      return true;
    });
    for (; next < one.flows.size() && one.flows[next].start <= now; ++next) {
      active.push_back({.flow = next, .left = one.flows[next].bytes});
    }
  }
  return ends;
}

template <typename Check>
std::vector<double> EndsOf(const RandomCase& one, const Check& check) {
  FairSharing sharing(one.capacities);
  one.AddPaths(sharing);
  std::vector<double> ends(one.flows.size());
  std::vector<uint32_t> ended;
  size_t next = 0;
  while (next < one.flows.size() || sharing.NextEnd() < 1e300) {
    double time = sharing.NextEnd();
    if (next < one.flows.size()) time = std::min(time, one.flows[next].start);
    ended.clear();
    sharing.AdvanceTo(time, ended);
    for (const uint32_t flow : ended) ends[flow] = time;
    for (; next < one.flows.size() && one.flows[next].start <= time; ++next) {
      sharing.Start(one.flows[next].path, one.flows[next].bytes, static_cast<uint32_t>(next));
    }
    check(sharing);
  }
  return ends;
}

// Every topology, with a slow link: the certificate at each event, and the ends of plain filling.
TEST(FairSharing, MessagesOnAllTopologiesAreFair) {
  for (const char* text :
       {"Ring(8):50GB/s,500ns", "Mesh(4):50GB/s,500ns Ring(4):25GB/s,1us",
        "FullyConnected(6):50GB/s,500ns", "Switch(4):200GB/s,250ns Switch(4):25GB/s,2us",
        "FatTree(4,2):50GB/s,500ns", "Dragonfly(1,2,1):50GB/s,500ns"}) {
    SimMachine machine;
    auto graph = ParseNetworkGraph(NetworkOfDims(text).value(), "net");
    ASSERT_TRUE(graph) << graph.error().message;
    const std::vector<std::string> slow = {"0@0:0.3"};
    ASSERT_TRUE(UseGraph(*std::move(graph), slow, "net", machine));
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const RandomCase one(*machine.graph, seed);
      const std::vector<double> ends = EndsOf(one, ExpectMaxMin);
      const std::vector<double> expected = PlainEnds(one);
      for (size_t flow = 0; flow < ends.size(); ++flow) {
        ASSERT_NEAR(ends[flow], expected[flow], 1e-6 * expected[flow]) << text << " " << seed;
      }
    }
  }
}

TEST(FairSharing, AFlowMayStandForSeveral) {
  // Each flow on the first path puts three flows on the first link, and one on the second. The
  // rates are those of three flows and of one that the second link limits.
  const double capacities[] = {100, 40, 10};
  FairSharing sharing(capacities);
  const uint32_t first[] = {0, 1};
  const uint32_t weights[] = {3, 1};
  const uint32_t second[] = {0, 2};
  sharing.AddPath(first, weights);
  sharing.AddPath(second);
  sharing.Start(0, 600, 7);
  sharing.Start(1, 1000, 8);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 30);
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 10);
  EXPECT_EQ(sharing.FlowsOnLink(0), 4u);
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 20);
  std::vector<uint32_t> ended;
  sharing.AdvanceTo(20, ended);
  EXPECT_EQ(ended, std::vector<uint32_t>{7});
  EXPECT_EQ(sharing.FlowsOnLink(0), 1u);
  // Two of these flows: the first link limits them, as it would limit six.
  sharing.Start(0, 450, 1);
  sharing.Start(0, 450, 2);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 15);
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 10);
}

TEST(FairSharing, TakesWhatOthersLeave) {
  // Two flows share a link of 100; one of them also crosses a link of 20. The other takes 80.
  FairSharing sharing(std::vector<double>{100, 20, 100});
  const std::vector<uint32_t> slow = {0, 1};
  const std::vector<uint32_t> fast = {0, 2};
  sharing.Start(sharing.AddPath(slow), 2000, 0);
  sharing.Start(sharing.AddPath(fast), 2000, 1);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 20);
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 80);
  ExpectMaxMin(sharing);
  std::vector<uint32_t> ended;
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 25);
  sharing.AdvanceTo(25, ended);
  EXPECT_EQ(ended, std::vector<uint32_t>{1});
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 100);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 20);
}

TEST(FairSharing, AnEndMayLowerAnotherRate) {
  // The flows cross links of 100 and 30, of 30 and 20, and of 20. The third limits the second to
  // 10, so the first gets 20. When the third ends, both get 15.
  FairSharing sharing(std::vector<double>{100, 30, 20});
  const Paths paths = {{0, 1}, {1, 2}, {2}};
  for (const std::vector<uint32_t>& path : paths) sharing.AddPath(path);
  sharing.Start(0, 1e6, 0);
  sharing.Start(1, 1e6, 1);
  sharing.Start(2, 100, 2);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 20);
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 10);
  std::vector<uint32_t> ended;
  sharing.AdvanceTo(sharing.NextEnd(), ended);
  EXPECT_EQ(ended, std::vector<uint32_t>{2});
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 15);
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 15);
}

TEST(FairSharing, EqualFlowsShareAPath) {
  FairSharing sharing(std::vector<double>{10});
  const std::vector<uint32_t> path = {0};
  sharing.AddPath(path);
  for (uint32_t flow = 0; flow < 5; ++flow) sharing.Start(0, 100, flow);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 2);
  std::vector<uint32_t> ended;
  sharing.AdvanceTo(25, ended);
  EXPECT_TRUE(ended.empty());
  sharing.Start(0, 10, 5);  // 50 bytes of each other flow are left
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 31);
  sharing.AdvanceTo(31, ended);
  EXPECT_EQ(ended, std::vector<uint32_t>{5});
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 51);
  sharing.AdvanceTo(51, ended);
  EXPECT_EQ(ended, (std::vector<uint32_t>{5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(sharing.FlowsOnLink(0), 0U);
}

TEST(FairSharing, FlowsInOrderFollowEachOther) {
  // Two flows in order count as one beside another flow: each path gets 5. The second of the two
  // begins when the first ends, in the middle of a nanosecond, and the rates stay.
  FairSharing sharing(std::vector<double>{10});
  const std::vector<uint32_t> path = {0};
  sharing.AddPath(path, {}, FairSharing::Order::kInOrder);
  sharing.AddPath(path);
  sharing.Start(0, 102, 0);
  sharing.Start(0, 98, 1);
  sharing.Start(1, 1000, 2);
  EXPECT_DOUBLE_EQ(sharing.RateOf(0), 5);
  EXPECT_EQ(sharing.FlowsOnLink(0), 2U);
  std::vector<uint32_t> ended;
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 20.4);
  sharing.AdvanceTo(21, ended);
  EXPECT_EQ(ended, std::vector<uint32_t>{0});
  EXPECT_DOUBLE_EQ(sharing.NextEnd(), 40);
  EXPECT_EQ(sharing.computations(), 1U);
  sharing.AdvanceTo(40, ended);
  EXPECT_EQ(ended, (std::vector<uint32_t>{0, 1}));
  EXPECT_DOUBLE_EQ(sharing.RateOf(1), 10);
  // The path can be used again. Three flows may end in one step.
  for (uint32_t flow = 3; flow < 6; ++flow) sharing.Start(0, 1, flow);
  sharing.AdvanceTo(41, ended);
  EXPECT_EQ(ended, (std::vector<uint32_t>{0, 1, 3, 4, 5}));
}

TEST(FairSharing, ComputesOnlyWhatChanged) {
  FairSharing sharing(std::vector<double>{10, 10});
  const Paths paths = {{0}, {1}};
  for (const std::vector<uint32_t>& path : paths) sharing.AddPath(path);
  sharing.Start(0, 100, 0);
  sharing.NextEnd();
  sharing.Start(1, 200, 1);
  sharing.Start(1, 200, 2);
  sharing.NextEnd();
  EXPECT_EQ(sharing.computations(), 2U);
  EXPECT_EQ(sharing.computed_paths(), 2U);
}

TEST(FairSharing, IsMaxMinAtEachEventAndEqualsAPlainSimulation) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomCase one(seed);
    const std::vector<double> ends = EndsOf(one, ExpectMaxMin);
    const std::vector<double> expected = PlainEnds(one);
    for (size_t i = 0; i < ends.size(); ++i) {
      ASSERT_NEAR(ends[i], expected[i], 1e-7 * expected[i]) << "seed " << seed << ", flow " << i;
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// Up to 219 links, some of which most paths cross, capacities over four orders of magnitude, and
// flows that count as several on a link.
TEST(FairSharing, IsMaxMinAtEachEventOfLargeNetworks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t count) { return static_cast<uint32_t>(random() % count); };
    const uint32_t link_count = 20 + below(200);
    const bool alike = below(2) == 0;
    std::vector<double> capacities;
    for (uint32_t i = 0; i < link_count; ++i) {
      capacities.push_back(alike ? 50 : std::pow(10, below(400) / 100.0));
    }
    FairSharing sharing(capacities);
    const uint32_t path_count = 10 + below(400);
    for (uint32_t i = 0; i < path_count; ++i) {
      std::vector<uint32_t> links;
      std::vector<uint32_t> weights;
      for (uint32_t hops = 1 + below(6); hops > 0; --hops) {
        const uint32_t link = below(below(3) == 0 ? 10 : link_count);
        if (std::ranges::find(links, link) != links.end()) continue;
        links.push_back(link);
        weights.push_back(below(4) == 0 ? 1 + below(5) : 1);
      }
      sharing.AddPath(links, weights);
    }
    constexpr uint32_t kFlows = 200;
    uint32_t started = 0;
    double next = 0;
    std::vector<uint32_t> ended;
    while (started < kFlows || sharing.NextEnd() < 1e300) {
      const double end = sharing.NextEnd();
      if (started == kFlows || end <= next) {
        sharing.AdvanceTo(end, ended);
      } else {
        sharing.AdvanceTo(next, ended);
        for (uint32_t more = 1 + below(3); more > 0 && started < kFlows; --more) {
          sharing.Start(below(path_count), below(2) == 0 ? 1000 : 1 + below(20000), started++);
        }
        next += below(20);
      }
      ExpectMaxMin(sharing);
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_EQ(ended.size(), kFlows);
  }
}

// Times advance to whole nanoseconds, as in simulations. Each flow ends once, in the first whole
// nanosecond after its end, if rates change in whole nanoseconds only.
TEST(FairSharing, EveryFlowEndsInTheNextWholeNanosecond) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomCase one(seed);
    FairSharing sharing(one.capacities);
    one.AddPaths(sharing);
    std::vector<uint32_t> ended;
    size_t next = 0;
    while (next < one.flows.size() || sharing.NextEnd() < 1e300) {
      double time = std::ceil(sharing.NextEnd());
      if (next < one.flows.size()) time = std::min(time, one.flows[next].start);
      const size_t before = ended.size();
      sharing.AdvanceTo(time, ended);
      EXPECT_TRUE(ended.size() > before || time < sharing.NextEnd());
      EXPECT_GT(sharing.NextEnd(), time);
      for (; next < one.flows.size() && one.flows[next].start <= time; ++next) {
        sharing.Start(one.flows[next].path, one.flows[next].bytes, static_cast<uint32_t>(next));
      }
      ExpectMaxMin(sharing);
    }
    std::ranges::sort(ended);
    ASSERT_EQ(ended.size(), one.flows.size()) << "seed " << seed;
    EXPECT_TRUE(std::ranges::adjacent_find(ended) == ended.end()) << "seed " << seed;
  }
}

TEST(FairSharing, PathsEndInTheOrderOfTheirFirstEnd) {
  // The first flow would end at 10 and then shares its link, so that it ends after the others.
  FairSharing sharing(std::vector<double>{10, 10, 10});
  const Paths paths = {{0}, {1}, {2}, {0}};
  for (const std::vector<uint32_t>& path : paths) sharing.AddPath(path);
  sharing.Start(0, 100, 0);
  sharing.Start(1, 90, 1);
  sharing.Start(2, 120, 2);
  std::vector<uint32_t> ended;
  sharing.AdvanceTo(1, ended);
  sharing.Start(3, 1000, 3);
  sharing.AdvanceTo(20, ended);
  EXPECT_EQ(ended, (std::vector<uint32_t>{1, 2, 0}));
}

// Sums of many equal rates have rounding errors, which must not make a link free and limit the
// same flows again and again.
TEST(FairSharing, ManyFlowsOfHugeWeightsAndEqualLinks) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t count) { return static_cast<uint32_t>(random() % count); };
    const std::vector<double> capacities(4 + below(8), (1 << 20) + 2 + 0x1p-32);
    FairSharing sharing(capacities);
    for (int i = 0; i < 100; ++i) {
      std::vector<uint32_t> links;
      std::vector<uint32_t> weights;
      for (int hops = 0; hops < 3; ++hops) {
        const uint32_t link = below(capacities.size());
        if (std::ranges::find(links, link) != links.end()) continue;
        links.push_back(link);
        weights.push_back(below(3) == 0 ? 1U << below(21) : 1);
      }
      sharing.AddPath(links, weights);
    }
    std::vector<uint32_t> ended;
    for (uint32_t flow = 0; flow < 300; ++flow) sharing.Start(below(100), 1000, flow);
    while (sharing.NextEnd() < 1e300) {
      sharing.AdvanceTo(sharing.NextEnd(), ended);
      ExpectMaxMin(sharing);
    }
    EXPECT_EQ(ended.size(), 300U);
  }
}

}  // namespace
}  // namespace etude
