// Speed of flows that share links by max-min fairness, and their ends for given cases.
//
//   network_bench [RUNS]   one JSON object a line for each workload, with flow events (starts and
//                          ends) per CPU second of each run
//   network_bench ends     reads cases from standard input and writes the ends of their flows.
//                          A case is "links paths flows", the capacities, for each path its length
//                          and its links, and for each flow, by start: path, start and bytes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/sim/machine/network_text.h"
#include "src/sim/network/fair_sharing.h"
#include "src/sim/network/network_graph.h"
#include "src/sim/network/network_topologies.h"

namespace {

using etude::FairSharing;
using etude::NetworkGraph;
using etude::NetworkRoutes;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A network with its paths.
class Traffic {
 public:
  explicit Traffic(const std::string& dims) : graph_(Make(dims)), routes_(graph_) {
    for (const etude::NetworkLink& link : graph_.links()) capacities_.push_back(link.bandwidth);
    sharing_ = FairSharing(capacities_);
  }

  int64_t npus() const { return graph_.npus(); }
  FairSharing& sharing() { return sharing_; }
  uint32_t PathOf(int64_t from, int64_t to) {
    const auto [found, is_new] = paths_.try_emplace({from, to});
    if (is_new) {
      std::vector<uint32_t> links;
      routes_.Find(from, to, nullptr, links);
      found->second = sharing_.AddPath(links);
    }
    return found->second;
  }

 private:
  static NetworkGraph Make(const std::string& dims) {
    auto graph = etude::MakeNetwork(*etude::NetworkOfDims(dims), "network");
    if (!graph || !graph->Finish("network")) std::abort();
    return *std::move(graph);
  }

  NetworkGraph graph_;
  NetworkRoutes routes_;
  std::vector<double> capacities_;
  FairSharing sharing_{{}};
  std::map<std::pair<int64_t, int64_t>, uint32_t> paths_;
};

struct Counts {
  double events = 0;
  double seconds = 0;
};

// Rounds of messages that start together when the previous round has ended.
using Round = std::vector<std::pair<int64_t, int64_t>>;
Counts Grouped(Traffic& traffic, const std::vector<Round>& rounds, int times) {
  std::vector<std::vector<uint32_t>> paths;
  for (const Round& round : rounds) {
    paths.emplace_back();
    for (const auto& [from, to] : round) paths.back().push_back(traffic.PathOf(from, to));
  }
  FairSharing& sharing = traffic.sharing();
  std::vector<uint32_t> ended;
  Counts counts;
  const double begin = CpuSeconds();
  for (int i = 0; i < times; ++i) {
    for (const std::vector<uint32_t>& round : paths) {
      for (uint32_t flow = 0; flow < round.size(); ++flow) {
        sharing.Start(round[flow], 1 << 20, flow);
      }
      ended.clear();
      while (ended.size() < round.size()) sharing.AdvanceTo(std::ceil(sharing.NextEnd()), ended);
      counts.events += 2.0 * static_cast<double>(round.size());
    }
  }
  counts.seconds = CpuSeconds() - begin;
  return counts;
}

// Messages between random NPUs, of exponentially distributed sizes, that start at random times and
// use a share of what the NPUs' links carry.
Counts Random(Traffic& traffic, double load, int count, uint64_t seed) {
  struct One {
    double start = 0;
    uint32_t path = 0;
    double bytes = 0;
  };
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  constexpr double kBytes = 1 << 20;
  constexpr double kRate = 50;  // bytes per ns, of a link
  std::vector<One> flows;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    now -= std::log(1 - uniform()) * kBytes / (kRate * load * static_cast<double>(traffic.npus()));
    const auto npus = static_cast<uint64_t>(traffic.npus());
    const auto from = static_cast<int64_t>(random() % npus);
    const auto to = (from + 1 + static_cast<int64_t>(random() % (npus - 1))) % traffic.npus();
    flows.push_back({.start = now,
                     .path = traffic.PathOf(from, to),
                     .bytes = 1 - std::log(1 - uniform()) * kBytes});
  }
  FairSharing& sharing = traffic.sharing();
  std::vector<uint32_t> ended;
  const double offset = sharing.now();
  const double begin = CpuSeconds();
  for (uint32_t i = 0; i < flows.size(); ++i) {
    const double start = offset + flows[i].start;
    while (sharing.NextEnd() <= start) sharing.AdvanceTo(sharing.NextEnd(), ended);
    sharing.AdvanceTo(start, ended);
    sharing.Start(flows[i].path, flows[i].bytes, i);
  }
  while (ended.size() < flows.size()) sharing.AdvanceTo(sharing.NextEnd(), ended);
  return {.events = 2.0 * count, .seconds = CpuSeconds() - begin};
}

std::vector<Round> RingRounds(int64_t npus) {
  Round round;
  for (int64_t i = 0; i < npus; ++i) round.emplace_back(i, (i + 1) % npus);
  return {round};
}
std::vector<Round> AllToAllRounds(int64_t npus) {
  Round round;
  for (int64_t i = 0; i < npus; ++i) {
    for (int64_t j = 1; j < npus; ++j) round.emplace_back(i, (i + j) % npus);
  }
  return {round};
}
std::vector<Round> DoublingRounds(int64_t npus) {
  std::vector<Round> rounds;
  for (int64_t bit = 1; bit < npus; bit *= 2) {
    rounds.emplace_back();
    for (int64_t i = 0; i < npus; ++i) rounds.back().emplace_back(i, i ^ bit);
  }
  return rounds;
}

template <typename Run>
void Measure(std::string_view name, std::string_view kind, int runs, const std::string& dims,
             const Run& run) {
  std::vector<double> rates;
  double paths = 0;
  for (int i = 0; i < runs; ++i) {
    Traffic traffic(dims);
    const Counts counts = run(traffic, i);
    rates.push_back(counts.events / counts.seconds);
    paths = static_cast<double>(traffic.sharing().computed_paths()) /
            static_cast<double>(traffic.sharing().computations());
  }
  std::ranges::sort(rates);
  fmt::print(R"({{"name": "{}", "kind": "{}", "network": "{}", "paths": {:.1f}, )"
             R"("events_per_s": [{:.0f}]}})"
             "\n",
             name, kind, dims, paths, fmt::join(rates, ", "));
  std::fflush(stdout);
}

int MeasureAll(int runs) {
  const std::string ring = "Ring(1024):50GB/s,500ns";
  const std::string torus = "Ring(8):50GB/s,500ns Ring(8):50GB/s,500ns";
  const std::string flat = "Switch(256):50GB/s,500ns";
  const std::string tree = "FatTree(16):50GB/s,500ns";
  const std::string narrow = "FatTree(16,4):50GB/s,500ns";
  const std::string dragonfly = "Dragonfly(4,8,4):50GB/s,500ns";
  const auto grouped = [](std::vector<Round> (*rounds)(int64_t), int times) {
    return [=](Traffic& traffic, int) { return Grouped(traffic, rounds(traffic.npus()), times); };
  };
  const auto random = [](double load, int count) {
    return [=](Traffic& traffic, int i) {
      return Random(traffic, load, count, static_cast<uint64_t>(i) + 1);
    };
  };
  Measure("ring steps", "grouped", runs, ring, grouped(RingRounds, 500));
  Measure("halving and doubling", "grouped", runs, tree, grouped(DoublingRounds, 20));
  Measure("halving and doubling, 4:1", "grouped", runs, narrow, grouped(DoublingRounds, 20));
  Measure("all-to-all", "grouped", runs, flat, grouped(AllToAllRounds, 5));
  Measure("all-to-all", "grouped", runs, torus, grouped(AllToAllRounds, 1));
  Measure("random, load 0.3", "random", runs, tree, random(0.3, 100'000));
  Measure("random, load 0.6", "random", runs, tree, random(0.6, 20'000));
  Measure("random, load 0.3", "random", runs, dragonfly, random(0.3, 100'000));
  return 0;
}

int WriteEnds() {
  size_t links = 0;
  size_t paths = 0;
  size_t flows = 0;
  while (std::cin >> links >> paths >> flows) {
    std::vector<double> capacities(links);
    for (double& capacity : capacities) std::cin >> capacity;
    FairSharing sharing(capacities);
    for (size_t i = 0; i < paths; ++i) {
      size_t length = 0;
      std::cin >> length;
      std::vector<uint32_t> path(length);
      for (uint32_t& link : path) std::cin >> link;
      sharing.AddPath(path);
    }
    std::vector<double> ends(flows);
    std::vector<uint32_t> ended;
    const auto advance = [&](double time) {
      ended.clear();
      sharing.AdvanceTo(time, ended);
      for (const uint32_t flow : ended) ends[flow] = time;
    };
    for (uint32_t i = 0; i < flows; ++i) {
      uint32_t path = 0;
      double start = 0;
      double bytes = 0;
      std::cin >> path >> start >> bytes;
      while (sharing.NextEnd() <= start) advance(sharing.NextEnd());
      advance(start);
      sharing.Start(path, bytes, i);
    }
    while (sharing.NextEnd() < 1e300) advance(sharing.NextEnd());
    fmt::print("{:.17g}\n", fmt::join(ends, " "));
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "5";
  if (first == "ends") return WriteEnds();
  return MeasureAll(std::max(1, std::atoi(std::string(first).c_str())));
}
