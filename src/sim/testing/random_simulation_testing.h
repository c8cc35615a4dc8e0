#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/testing/sim_testing.h"

// Random machines and jobs for tests, small and diverse.
namespace etude {

class RandomSimulation {
 public:
  SimMachine machine;
  SimWorkload workload;

  explicit RandomSimulation(uint32_t seed) : random_(seed), regular_(Chance(2)) {
    MakeDims();
    MakeSystem();
    if (!Usually() && Chance(3)) MakePrograms();
    MakeMemory();
    MakeFaults();
    MakeWorkload();
  }

  // Returns a description for failure messages.
  std::string Describe() const {
    std::string text = machine.congestion ? "aware," : "";
    for (const NetworkDim& dim : machine.dims) {
      text += fmt::format(" {} × {} of {} GiB/s {} ns", static_cast<int>(dim.shape), dim.npus,
                          dim.bandwidth, dim.latency);
    }
    const SystemModel& system = machine.system;
    text += fmt::format(
        "; order {} delay {} active {} splits {} queues {}{}{}{}{}{}{}",
        static_cast<int>(system.order), system.endpoint_delay, system.active_chunks, system.splits,
        system.queues, system.shared_bus ? " bus" : "",
        system.bandwidth_aware ? " bandwidth-aware" : "", system.rendezvous ? " rendezvous" : "",
        system.replay_only ? " replay-only" : "", system.roofline ? " roofline" : "",
        system.programs.empty() ? "" : " programs");
    for (const auto& [type, choices] : system.algorithms) {
      text += fmt::format("; {}:", Name(type));
      for (const AlgorithmChoice& choice : choices) {
        text += fmt::format(" {}{} {}", choice.whole ? "one " : "",
                            static_cast<int>(choice.algorithm), choice.window.value_or(-1));
      }
    }
    for (const auto& [number, members] : workload.groups) {
      text += fmt::format("\ngroup {}:", number);
      for (const int64_t member : members) text += fmt::format(" {}", member);
    }
    const SimProgram* last = nullptr;
    for (const SimRank& rank : workload.ranks) {
      if (rank.program.get() == last) continue;
      last = rank.program.get();
      for (size_t i = 0; i < last->nodes.size(); ++i) {
        const SimNode& node = last->nodes[i];
        text += fmt::format("\n {}: {} {}{} bytes {} duration {} group {} peer {} before", i,
                            static_cast<int>(node.kind), Name(node.collective),
                            node.on_host ? " host" : "", node.bytes, node.duration, node.group,
                            node.peer);
        for (const uint32_t child : last->children[i]) text += fmt::format(" {}", child);
      }
    }
    return text;
  }

 private:
  static constexpr CollectiveType kTypes[] = {
      CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
      CollectiveType::kAllToAll};

  bool Chance(uint32_t of) { return random_() % of == 0; }
  // Returns true, mostly, if ranks are to do the same.
  bool Usually() { return regular_ && !Chance(8); }
  int64_t OneOf(const std::vector<int64_t>& values) { return values[random_() % values.size()]; }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  void MakeDims() {
    const int64_t count = OneOf({1, 1, 1, 2, 2, 3});
    for (int64_t i = 0; i < count; ++i) {
      int64_t npus = OneOf({2, 3, 4, 5, 8});
      if (count == 2) npus = OneOf({1, 2, 3, 4});
      if (count == 3) npus = OneOf({2, 2, 3});
      machine.dims.push_back({.shape = static_cast<NetworkShape>(random_() % 3),
                              .npus = npus,
                              .bandwidth = static_cast<double>(OneOf({7, 50, 200})),
                              .latency = static_cast<double>(OneOf({0, 10, 333, 500}))});
    }
    if (machine.npus() == 1) machine.dims[0].npus = 2;
    machine.congestion = count == 1 && Chance(regular_ ? 3 : 2);
  }

  AlgorithmChoice Choice(CollectiveType type, int64_t members) {
    // Mostly valid choices. Trees are for all-reduces; a machine with a tree has no classes.
    std::vector<CollectiveAlgorithm> algorithms;
    for (const AlgorithmInfo& info : AlgorithmTable()) {
      if (!info.in_files || !(info.Fits(members) || Chance(60))) continue;
      if (info.only_graph && !(info.in_network && Chance(60))) continue;
      const bool is_tree_in_place = type == CollectiveType::kAllReduce || Chance(200);
      if (info.alternates && !(is_tree_in_place && !Usually() && Chance(3))) continue;
      algorithms.push_back(info.algorithm);
    }
    AlgorithmChoice choice{
        .algorithm =
            algorithms[static_cast<size_t>(Below(static_cast<int64_t>(algorithms.size())))]};
    if (Info(choice.algorithm).has_window && Chance(2)) choice.window = OneOf({1, 2, 3});
    return choice;
  }
  void MakeSystem() {
    SystemModel& system = machine.system;
    system.order = static_cast<StreamOrder>(random_() % 3);
    system.endpoint_delay = OneOf({0, 1, 10, 10});
    system.active_chunks = OneOf({1, 1, 2, 3, 8});
    system.splits = OneOf({1, 2, 3, 4});
    system.queues = OneOf({1, 1, 2, 3, 4});
    system.bandwidth_aware = Chance(2);
    system.memory_bandwidth = static_cast<double>(OneOf({0, 50, 1600}));
    system.rendezvous = Chance(6);
    if (Chance(6)) {
      system.shared_bus = {.latency = OneOf({0, 1, 20}),
                           .overhead = OneOf({0, 5}),
                           .gap = OneOf({0, 3, 40}),
                           .nanos_of_byte = static_cast<double>(OneOf({0, 1, 38, 1000})) / 10'000,
                           .reduction = OneOf({0, 1, 3})};
    }
    system.replay_broadcasts = Chance(2);
    system.replay_only = Chance(30);
    if (Chance(5)) {
      system.roofline = true;
      system.memory_bandwidth = 50;
      system.peak = 3;
    }
    for (const CollectiveType type : kTypes) {
      if (Chance(150)) continue;  // collective without an algorithm
      std::vector<AlgorithmChoice>& choices = system.algorithms[type];
      const size_t count = Chance(8) ? 1 : machine.dims.size();
      for (size_t i = 0; i < count; ++i) choices.push_back(Choice(type, machine.dims[i].npus));
      if (Chance(10)) {
        choices = {Choice(type, machine.npus())};
        choices[0].whole = true;
      }
    }
  }
  // Makes an all-reduce program: all ranks send to the next, some wait for the received message.
  void MakePrograms() {
    const int64_t total = machine.npus();
    const int64_t bytes = OneOf({1, 4096, 100'000});
    for (int64_t rank = 0; rank < total; ++rank) {
      std::vector<SimNode> nodes{
          {.kind = NodeKind::kSend, .peer = 0, .bytes = bytes, .tag = 3},
          {.kind = NodeKind::kRecv, .peer = 1, .bytes = bytes, .tag = 3},
          {.duration = OneOf({0, 7, 300})},
          {.kind = NodeKind::kSend, .peer = 1, .bytes = bytes + 1, .tag = 3},
          {.kind = NodeKind::kRecv, .peer = 0, .bytes = bytes + 1, .tag = 3}};
      machine.system.programs[CollectiveType::kAllReduce].push_back(
          {.program = std::make_shared<const SimProgram>(
               testing_sim::ProgramOf(std::move(nodes), {{}, {}, {1}, {0, 2}, {}})),
           .groups = {},
           .peers = {(rank + 1) % total, (rank + total - 1) % total}});
    }
  }
  void MakeMemory() {
    machine.memory = {.kind = static_cast<RemoteMemoryKind>(1 + random_() % 3),
                      .latency = OneOf({0, 100}),
                      .bandwidth = 3,
                      .npus_per_node = OneOf({1, 2, 3})};
    if (Usually()) machine.memory.kind = RemoteMemoryKind::kPerNpu;
    if (Chance(40)) machine.memory.kind = RemoteMemoryKind::kNone;
  }

  void MakeFaults() {
    const int64_t total = machine.npus();
    if (Chance(5)) {
      for (int64_t i = OneOf({1, 1, 2}); i > 0; --i) machine.stragglers[Below(total)] = 1.7;
    }
    if (!Chance(4)) return;
    for (int64_t i = OneOf({1, 1, 2, 3}); i > 0; --i) {
      SlowLink link{.npu = Below(total),
                    .dim = random_() % machine.dims.size(),
                    .share = Chance(2) ? 0.5 : 0.1,
                    .latency = static_cast<double>(OneOf({0, 75}))};
      const NetworkDim& dim = machine.dims[link.dim];
      if (dim.shape != NetworkShape::kSwitch && dim.npus > 1 && Chance(2)) {
        int64_t stride = 1;
        for (size_t j = 0; j < link.dim; ++j) stride *= machine.dims[j].npus;
        const int64_t at = link.npu / stride % dim.npus;
        link.other = link.npu + ((at + 1) % dim.npus - at) * stride;
      }
      machine.slow_links.push_back(link);
    }
    // The same in each line of the dimension, so that ranks can still do the same.
    if (Chance(2) && !machine.slow_links[0].other) {
      const SlowLink first = machine.slow_links[0];
      machine.slow_links.clear();
      for (int64_t npu = 0; npu < total; ++npu) {
        int64_t stride = 1;
        for (size_t j = 0; j < first.dim; ++j) stride *= machine.dims[j].npus;
        if (npu / stride % machine.dims[first.dim].npus != 0) continue;
        machine.slow_links.push_back(first);
        machine.slow_links.back().npu = npu;
      }
    }
  }

  // Makes two partitions of the ranks into groups.
  void MakeGroups() {
    const int64_t total = machine.npus();
    if (total % 2 == 0 && (regular_ || Chance(2))) {  // rows and columns
      for (int64_t rank = 0; rank < total; ++rank) {
        workload.groups[1 + rank / (total / 2)].push_back(rank);
        workload.groups[3 + rank % (total / 2)].push_back(rank);
      }
      return;
    }
    std::vector<int64_t> ranks;
    for (int64_t rank = 0; rank < total; ++rank) ranks.push_back(rank);
    int64_t number = 1;
    for (int partition = 0; partition < 2; ++partition) {
      for (size_t i = ranks.size(); i-- > 1;) std::swap(ranks[i], ranks[random_() % (i + 1)]);
      for (size_t i = 0; i < ranks.size();) {
        const size_t size = std::min<size_t>(ranks.size() - i, 1 + random_() % 6);
        workload.groups[number++].assign(ranks.begin() + static_cast<int64_t>(i),
                                         ranks.begin() + static_cast<int64_t>(i + size));
        i += size;
      }
    }
  }
  // Returns the groups of a rank in the first and the second partition.
  std::vector<int64_t> GroupsOf(int64_t rank) const {
    std::vector<int64_t> found;
    for (const auto& [number, members] : workload.groups) {
      if (std::ranges::find(members, rank) != members.end()) found.push_back(number);
    }
    return found;
  }

  enum class Kind {
    kDevice,
    kHost,
    kAll,
    kFirst,
    kSecond,
    kSend,
    kRecv,
    kMemory,
    kNothing,
    kBroadcast
  };

  SimNode NodeOf(Kind kind) {
    SimNode node{.duration = OneOf({0, 100, 500, 1110, 5000})};
    switch (kind) {
      case Kind::kDevice:
        node.flops = OneOf({0, 1000, 1'000'000});
        node.bytes = OneOf({0, 4096, 100'000});
        break;
      case Kind::kHost: node.on_host = true; break;
      case Kind::kAll:
      case Kind::kFirst:
      case Kind::kSecond:
        node.kind = NodeKind::kCollective;
        node.collective = kTypes[random_() % 4];
        if (Chance(4)) {
          static constexpr CollectiveType kOthers[] = {
              CollectiveType::kBarrier, CollectiveType::kBroadcast, CollectiveType::kReduce,
              CollectiveType::kGather,  CollectiveType::kScatter,   CollectiveType::kBarrier};
          node.collective = kOthers[random_() % 6];
          if (!Chance(3)) node.duration = 0;
          if (kind == Kind::kAll) node.root = Below(machine.npus());
          if (kind != Kind::kAll && Chance(8)) node.root = Below(3);
        }
        node.bytes = OneOf({0, 1, 1000, 4096, 32768, 99'991, 1 << 20});
        node.priority = OneOf({0, 1, 2});
        if (kind == Kind::kFirst) node.group = 1;
        if (kind == Kind::kSecond) node.group = 2;
        if (kind == Kind::kAll && Chance(4)) node.dims = static_cast<uint32_t>(random_() % 8);
        break;
      case Kind::kSend:
      case Kind::kRecv:
        node.kind = kind == Kind::kSend ? NodeKind::kSend : NodeKind::kRecv;
        node.peer = static_cast<uint32_t>(random_() % 4);
        node.bytes = OneOf({8, 8, 8, 32768});
        node.tag = OneOf({0, 0, 0, 1});
        break;
      case Kind::kMemory:
        node.kind = Chance(2) ? NodeKind::kMemLoad : NodeKind::kMemStore;
        node.bytes = OneOf({0, 500, 4096});
        break;
      case Kind::kNothing: node.kind = Chance(2) ? NodeKind::kMetadata : NodeKind::kUnknown; break;
      case Kind::kBroadcast:
        node.kind = NodeKind::kCollective;
        node.collective = CollectiveType::kBroadcast;
        break;
    }
    return node;
  }

  // Makes nearly the same program for all ranks. Collectives are mostly in one order, and messages
  // mostly have a receive.
  void MakeWorkload() {
    const int64_t total = machine.npus();
    MakeGroups();
    const bool messy = !regular_ && Chance(8);
    const bool staged =
        regular_ && total % 2 == 0 && total > 2;  // two halves, one sends to the other
    std::vector<Kind> kinds;
    std::vector<SimNode> nodes;
    std::vector<std::vector<uint32_t>> befores;
    const size_t count = 1 + random_() % 8;
    for (uint32_t i = 0; i < count; ++i) {
      static constexpr Kind kAll[] = {Kind::kDevice, Kind::kHost,    Kind::kDevice,   Kind::kAll,
                                      Kind::kAll,    Kind::kFirst,   Kind::kSecond,   Kind::kSend,
                                      Kind::kMemory, Kind::kNothing, Kind::kBroadcast};
      const auto add = [&](Kind kind, const SimNode& node) {
        const auto number = static_cast<uint32_t>(nodes.size());
        std::vector<uint32_t>& before = befores.emplace_back();
        const bool chained = kind == Kind::kAll || kind == Kind::kFirst || kind == Kind::kSecond;
        for (uint32_t j = 0; j < number; ++j) {
          const bool other =
              kinds[j] == Kind::kAll || kinds[j] == Kind::kFirst || kinds[j] == Kind::kSecond;
          if (Chance(4) || (chained && other && !messy)) before.push_back(j);
        }
        kinds.push_back(kind);
        nodes.push_back(node);
      };
      Kind kind = kAll[random_() % std::size(kAll)];
      if (kind == Kind::kSend && regular_ && !staged) kind = Kind::kDevice;
      if (regular_ && total % 2 == 1 && kind == Kind::kFirst) kind = Kind::kAll;
      if (regular_ && total % 2 == 1 && kind == Kind::kSecond) kind = Kind::kAll;
      const SimNode node = NodeOf(kind);
      if (kind == Kind::kSend && !staged) {
        SimNode received = node;  // from the other end of the same step around all ranks
        received.kind = NodeKind::kRecv;
        received.peer ^= 1;
        if (messy && Chance(3)) received.bytes += 8;
        const bool receives_first = Chance(2);
        if (receives_first) add(Kind::kRecv, received);
        add(Kind::kSend, node);
        if (!receives_first) add(Kind::kRecv, received);
        continue;
      }
      add(kind, node);
    }
    const int64_t odd = (regular_ ? Chance(8) : Chance(3)) ? Below(total) : -1;
    const int64_t far = Below(total);
    std::vector<SimNode> of_second = nodes;
    if (staged) {
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (kinds[i] != Kind::kSend) continue;
        nodes[i].peer = of_second[i].peer = 0;
        of_second[i].kind = NodeKind::kRecv;
        if (Chance(2)) std::swap(nodes[i].kind, of_second[i].kind);
      }
    }
    const auto program = std::make_shared<const SimProgram>(testing_sim::ProgramOf(nodes, befores));
    const auto second =
        std::make_shared<const SimProgram>(testing_sim::ProgramOf(of_second, befores));
    for (int64_t rank = 0; rank < total; ++rank) {
      const bool is_second = staged && rank >= total / 2;
      SimRank one{.program = is_second ? second : program, .groups = GroupsOf(rank), .peers = {}};
      if (staged) {
        one.peers = {(rank + total / 2) % total};
      } else if (!regular_) {
        one.peers = {(rank + 1) % total, (rank + total - 1) % total, (rank + far) % total,
                     (rank + total - far) % total};
      }
      if (rank == odd) {
        std::vector<SimNode> mine = is_second ? of_second : nodes;
        for (SimNode& node : mine) {
          if (node.kind == NodeKind::kCompute && Chance(2)) node.duration += 77;
          if (messy && Chance(4)) node.bytes += 3;
        }
        one.program =
            std::make_shared<const SimProgram>(testing_sim::ProgramOf(std::move(mine), befores));
      }
      workload.ranks.push_back(std::move(one));
    }
  }

  std::mt19937 random_;
  const bool regular_;  // ranks can do the same
};

}  // namespace etude
