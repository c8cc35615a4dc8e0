#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/sim/program/sim_program.h"
#include "src/trace/words/enums.h"

// A machine as ASTRA-sim's files describe it. docs/models/astra_sim_2.md has the meaning of all
// fields.
namespace etude {

enum class NetworkShape : uint8_t { kRing, kFullyConnected, kSwitch };

// One dimension of the network: each NPU is connected with those that differ from it in this
// coordinate only.
struct NetworkDim {
  NetworkShape shape = NetworkShape::kRing;
  int64_t npus = 1;
  double bandwidth = 0;  // GiB/s of a link
  double latency = 0;    // ns of a link
};

enum class CollectiveAlgorithm : uint8_t {
  kRing,
  kDirect,
  kHalvingDoubling,
  kDoubleBinaryTree,
  // Of collectives that have one algorithm, which no system file names.
  kBinomialTree,
  kDissemination,
};

struct AlgorithmChoice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  std::optional<int64_t> window;  // kDirect: messages of a rank on their way; nullopt: to all
  bool whole = false;             // one ring, tree or exchange over all dimensions
};

// Of collectives that ASTRA-sim does not simulate.
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

enum class StreamOrder : uint8_t { kFifo, kLifo, kExplicit };

// A bus between an NPU and its memory, over which messages of collectives go at the ends of their
// way (LogGP).
struct SharedBus {
  int64_t latency = 0;       // L, ns
  int64_t overhead = 0;      // o, ns
  int64_t gap = 0;           // g, ns between transfers
  double nanos_of_byte = 0;  // G
  int64_t reduction = 1;     // ns of adding 100 bytes
};

struct SystemModel {
  StreamOrder order = StreamOrder::kFifo;
  int64_t endpoint_delay = 10;          // ns
  std::optional<SharedBus> shared_bus;  // instead of the delay
  int64_t active_chunks = 1;            // of each dimension
  int64_t splits = 1;                   // chunks of a collective
  int64_t queues = 1;                   // of each dimension
  bool bandwidth_aware = false;  // all-reduces as reduce-scatters and all-gathers of dimensions
  double memory_bandwidth = 0;   // GB/s of the NPU's own memory; 0: free
  double peak = 0;               // TFLOPS
  bool roofline = false;
  bool replay_only = false;
  bool rendezvous = false;
  // Those with a recorded time take it, as in ASTRA-sim; collectives of unknown type always.
  bool replay_broadcasts = true;
  // By dimension. An all-reduce, all-gather … uses as many dimensions as are named.
  std::map<CollectiveType, std::vector<AlgorithmChoice>> algorithms;
  // Collectives that are programs: by place of a rank among those that take part.
  std::map<CollectiveType, std::vector<SimRank>> programs;

  // Takes its recorded time on each rank by itself.
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

// A link, or all links of a NPU in a dimension, in both directions.
struct SlowLink {
  int64_t npu = 0;
  std::optional<int64_t> other;  // its neighbour; nullopt: all links of `npu` in `dim`
  size_t dim = 0;
  double share = 1;    // of the bandwidth that is left: above 0, up to 1
  double latency = 0;  // ns more
};

struct SimMachine {
  std::vector<NetworkDim> dims;
  bool congestion = false;  // links carry one message after the other; one dimension only
  SystemModel system;
  RemoteMemory memory;
  // Injected faults.
  std::map<int64_t, double> stragglers;  // by rank: computations take so many times as long
  std::vector<SlowLink> slow_links;
  // What its files leave open, or say in vain, and what is taken for it; a line each.
  std::vector<std::string> system_remarks;
  std::vector<std::string> memory_remarks;

  int64_t npus() const {
    int64_t total = 1;
    for (const NetworkDim& dim : dims) total *= dim.npus;
    return total;
  }
  // The dimensions that a collective of all ranks is along: bit i for dimension i, of the first 32.
  uint32_t DimsOf(const SimNode& node) const {
    const auto first = [](size_t count) {
      return static_cast<uint32_t>((uint64_t{1} << count) - 1);
    };
    const size_t count = std::min<size_t>(dims.size(), 32);
    if (OwnAlgorithm(node.collective)) return node.dims & first(count);
    const auto found = system.algorithms.find(node.collective);
    const bool is_whole = system.programs.contains(node.collective) ||
                          found == system.algorithms.end() || found->second.empty() ||
                          found->second.front().whole;
    if (is_whole) return first(count);
    return node.dims & first(std::min(count, found->second.size()));
  }
};

}  // namespace etude
