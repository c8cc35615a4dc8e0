#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/sim/machine/collective_times.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/words/enums.h"

// A machine as described by ASTRA-sim's files. All fields are defined in
// docs/models/astra_sim_2.md, and `graph` in docs/models/etude_1.md.
namespace etude {

class NetworkGraph;     // sim/network/network_graph.h
struct CollectivePlan;  // sim/plan/collective_plan.h

// How messages choose among the shortest paths of a graph.
enum class RouteChoice : uint8_t {
  kHashed,       // by sender and receiver: all messages between two NPUs take one path
  kLeastLoaded,  // by messages per bandwidth on the links when the message is sent
};

enum class NetworkShape : uint8_t {
  kRing,
  kFullyConnected,
  kSwitch,
  kGraph,  // the links are in SimMachine::graph
};

// One dimension of the network. It connects NPUs that differ in this coordinate only.
struct NetworkDim {
  NetworkShape shape = NetworkShape::kRing;
  int64_t npus = 1;
  double bandwidth = 0;  // GiB/s per link; unused with kGraph
  double latency = 0;    // ns per link; unused with kGraph
};

enum class CollectiveAlgorithm : uint8_t {
  kRing,
  kDirect,
  kHalvingDoubling,
  kDoubleBinaryTree,
  kInNetwork,  // the network's switches reduce and multicast
  kBidirectionalRing,
  kBruck,
  kPat,
  kSlicedAllReduce,  // of a reduce-scatter: a ring's all-reduce, of which each member keeps a part
  // The only algorithms of their collectives; not named in system files.
  kBinomialTree,
  kDissemination,
};

struct AlgorithmChoice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  std::optional<int64_t>
      window;          // kDirect: maximum of messages in flight per rank; nullopt: no limit
  bool whole = false;  // a single ring, tree or exchange over all dimensions

  friend bool operator==(const AlgorithmChoice&, const AlgorithmChoice&) = default;
};

// Returns the algorithm of collectives that ASTRA-sim does not simulate.
inline std::optional<CollectiveAlgorithm> OwnAlgorithm(CollectiveType type) {
  switch (type) {
    case CollectiveType::kBroadcast:
    case CollectiveType::kReduce:
    case CollectiveType::kGather:
    case CollectiveType::kScatter: return CollectiveAlgorithm::kBinomialTree;
    case CollectiveType::kBarrier: return CollectiveAlgorithm::kDissemination;
    case CollectiveType::kAllReduce:
    case CollectiveType::kAllGather:
    case CollectiveType::kAllToAll:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kReduceScatterBlock:
    case CollectiveType::kUnknown: break;
  }
  return std::nullopt;
}

// Algorithms of collectives of some sizes.
struct AlgorithmRule {
  CollectiveType type = CollectiveType::kUnknown;
  int64_t least_ranks = 0;
  int64_t most_ranks = INT64_MAX;
  int64_t least_bytes = 0;
  int64_t most_bytes = INT64_MAX;
  std::vector<AlgorithmChoice> choices;  // by dimension, or one for all

  bool Fits(CollectiveType its_type, int64_t ranks, int64_t bytes) const {
    return its_type == type && ranks >= least_ranks && ranks <= most_ranks &&
           bytes >= least_bytes && bytes <= most_bytes;
  }
};

enum class StreamOrder : uint8_t { kFifo, kLifo, kExplicit };

// LogGP model of a bus between an NPU and its memory, which carries messages of collectives at both
// ends.
struct SharedBus {
  int64_t latency = 0;       // L, ns
  int64_t overhead = 0;      // o, ns
  int64_t gap = 0;           // g, ns between transfers
  double nanos_of_byte = 0;  // G: ns per byte
  int64_t reduction = 1;     // ns per 100 bytes added
};

struct SystemModel {
  StreamOrder order = StreamOrder::kFifo;
  int64_t endpoint_delay = 10;          // ns
  std::optional<SharedBus> shared_bus;  // instead of the delay
  int64_t active_chunks = 1;            // per dimension
  int64_t splits = 1;                   // chunks per collective
  int64_t queues = 1;                   // per dimension
  bool bandwidth_aware =
      false;  // splits all-reduces into reduce-scatters and all-gathers by dimension
  double memory_bandwidth = 0;  // GB/s, local memory; 0: accesses take no time
  double peak = 0;              // TFLOPS
  bool roofline = false;
  bool replay_only = false;
  bool rendezvous = false;
  // Broadcasts with a recorded duration take it, as in ASTRA-sim. Collectives of unknown type
  // always do.
  bool replay_broadcasts = true;
  // Algorithms by dimension. A collective uses as many dimensions as are listed.
  std::map<CollectiveType, std::vector<AlgorithmChoice>> algorithms;
  // The first one that fits comes before `algorithms`. Only with SimMachine::graph.
  std::vector<AlgorithmRule> rules;
  std::string rules_name;  // "gloo", or a file
  // Collectives defined by programs, by a rank's position among the participants: on a graph, those
  // of as many members as there are programs.
  std::map<CollectiveType, std::vector<SimRank>> programs;
  std::map<CollectiveType, std::string> program_names;  // prefixes of their files
  // Collectives defined by plans of MSCCL++, for as many members as a plan has GPUs.
  std::map<CollectiveType, std::shared_ptr<const CollectivePlan>> plans;

  // Returns the algorithms of a collective by dimension; null if there are none.
  const std::vector<AlgorithmChoice>* FindAlgorithms(CollectiveType type, int64_t ranks,
                                                     int64_t bytes) const {
    for (const AlgorithmRule& rule : rules) {
      if (rule.Fits(type, ranks, bytes)) return &rule.choices;
    }
    const auto found = algorithms.find(type);
    return found == algorithms.end() ? nullptr : &found->second;
  }
  // Returns whether the node takes its recorded duration, on each rank separately.
  bool Replays(const SimNode& node) const {
    const bool may = node.collective == CollectiveType::kUnknown ||
                     (node.collective == CollectiveType::kBroadcast && replay_broadcasts);
    return may && node.duration > 0;
  }
};

enum class RemoteMemoryKind : uint8_t { kNone, kPerNpu, kPerNode, kPool };

struct RemoteMemory {
  RemoteMemoryKind kind = RemoteMemoryKind::kNone;
  int64_t latency = 0;   // ns
  double bandwidth = 0;  // bytes/ns
  int64_t npus_per_node = 1;
};

// A slow link, or all links of an NPU in a dimension; both directions.
struct SlowLink {
  int64_t npu = 0;
  std::optional<int64_t> other;  // neighbour; nullopt: all links of `npu` in `dim`
  size_t dim = 0;
  double share = 1;    // remaining share of the bandwidth: above 0, up to 1
  double latency = 0;  // additional, ns
};

struct SimMachine {
  std::vector<NetworkDim> dims;
  // Links that messages share by max-min fairness ("etude-1"); null: ASTRA-sim's networks.
  std::shared_ptr<const NetworkGraph> graph;
  RouteChoice routes = RouteChoice::kHashed;  // with `graph`
  // Times of whole communications, instead of a network; null: none. The only dimension has the
  // shape kGraph then.
  std::shared_ptr<const CollectiveTimes> times;
  std::optional<double> cores;  // with `times`: of the host that all ranks share; nullopt: of each
  bool congestion = false;      // links carry one message at a time; requires a single dimension
  SystemModel system;
  RemoteMemory memory;
  // Injected faults.
  std::map<int64_t, double> stragglers;  // by rank: factor on computation times
  double noise = 0;  // standard deviation of a random factor on each computation's time
  uint64_t noise_seed = 0;
  std::vector<SlowLink> slow_links;
  // Missing or ignored settings in the files, and the values used instead; one line each.
  std::vector<std::string> system_remarks;
  std::vector<std::string> memory_remarks;

  int64_t npus() const {
    int64_t total = 1;
    for (const NetworkDim& dim : dims) total *= dim.npus;
    return total;
  }
  // Returns the number of ranks of a collective along some dimensions: bit i for dimension i.
  int64_t RanksAlong(uint32_t some) const {
    int64_t ranks = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i >= 32 || (some >> i & 1) != 0) ranks *= dims[i].npus;
    }
    return ranks;
  }
  // Returns whether each communication takes the duration of its node.
  bool has_recorded_times() const { return times != nullptr && times->factor_of_nodes() > 0; }
  // Returns this time of a node, at least 1 ns; 0: unknown.
  int64_t RecordedTimeOf(const SimNode& node) const {
    if (node.duration == 0) return 0;
    const double time = static_cast<double>(node.duration) * times->factor_of_nodes();
    return std::max<int64_t>(1, std::llround(time));
  }
  // Returns whether collectives of different groups of a rank run at the same time. Messages of
  // programs are told apart by their own tags, which are the same in all groups.
  bool runs_groups_at_once() const { return graph != nullptr && system.programs.empty(); }
  // Returns the name of the model, with its version.
  std::string ModelName() const {
    if (times != nullptr) return std::string(times->name());
    return graph != nullptr ? "etude-1" : "astra-sim-2.0";
  }
  // Returns the programs of a collective, by member; null if it has none.
  const std::vector<SimRank>* FindPrograms(CollectiveType type, int64_t members) const {
    const auto found = system.programs.find(type);
    if (found == system.programs.end()) return nullptr;
    const bool fits = graph == nullptr || std::ssize(found->second) == members;
    return fits ? &found->second : nullptr;
  }
  // Returns the dimensions of a collective of all ranks: bit i for dimension i, of the first 32.
  uint32_t DimsOf(const SimNode& node) const {
    const auto first = [](size_t count) {
      return static_cast<uint32_t>((uint64_t{1} << count) - 1);
    };
    const size_t count = std::min<size_t>(dims.size(), 32);
    const std::vector<AlgorithmChoice>* choices =
        system.FindAlgorithms(node.collective, RanksAlong(node.dims), node.bytes);
    const bool is_one = choices != nullptr && !choices->empty() && choices->front().whole;
    if (OwnAlgorithm(node.collective)) return is_one ? first(count) : node.dims & first(count);
    const bool is_whole = FindPrograms(node.collective, npus()) != nullptr ||
                          system.plans.contains(node.collective) || choices == nullptr ||
                          choices->empty() || is_one;
    if (is_whole) return first(count);
    return node.dims & first(std::min(count, choices->size()));
  }
};

}  // namespace etude
