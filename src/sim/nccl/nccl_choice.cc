#include "src/sim/nccl/nccl_choice.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "src/sim/nccl/nccl_tables.h"

namespace etude {
namespace {

using enum NcclAlgorithm;
using enum NcclProtocol;

enum class Function : uint8_t { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };

// A function of a group, and the sizes that NCCL's formulas use.
struct Call {
  const NcclMachine& machine;
  const NcclGraphs& graphs;
  Function function;
  int64_t ranks;
  int64_t nodes;
  int64_t bytes;  // larger one of input and output

  int64_t gpus() const { return ranks / nodes; }
  size_t architecture() const { return static_cast<size_t>(machine.architecture); }
  size_t scale() const { return static_cast<size_t>(std::min<int64_t>(nodes, 3) - 1); }
  bool gathers() const {
    return function == Function::kAllGather || function == Function::kReduceScatter;
  }
  bool reduces_all() const { return function == Function::kAllReduce; }
  bool collnet() const { return nodes > 1 && graphs.collnet_chain.has_value(); }
};

struct Candidate {
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  const NcclGraph& graph;
};

std::optional<Function> FunctionOf(CollectiveType type) {
  switch (type) {
    case CollectiveType::kAllReduce:
    case CollectiveType::kBarrier: return Function::kAllReduce;
    case CollectiveType::kReduce: return Function::kReduce;
    case CollectiveType::kAllGather: return Function::kAllGather;
    case CollectiveType::kBroadcast: return Function::kBroadcast;
    case CollectiveType::kReduceScatter:
    case CollectiveType::kReduceScatterBlock: return Function::kReduceScatter;
    case CollectiveType::kGather:
    case CollectiveType::kScatter:
    case CollectiveType::kAllToAll:
    case CollectiveType::kUnknown: break;
  }
  return std::nullopt;
}

// Returns the graph of an algorithm; nullptr if the group has none.
const NcclGraph* GraphOf(const NcclGraphs& graphs, NcclAlgorithm algorithm) {
  const auto pointer = [](const std::optional<NcclGraph>& graph) {
    return graph ? &*graph : nullptr;
  };
  switch (algorithm) {
    case kTree:
    case kPat: return &graphs.tree;
    case kRing: return &graphs.ring;
    case kCollNetDirect: return pointer(graphs.collnet_direct);
    case kCollNetChain: return pointer(graphs.collnet_chain);
    case kNvls:
    case kNvlsTree: return pointer(graphs.nvls);
  }
  return nullptr;
}

bool FunctionHas(const Call& call, NcclAlgorithm algorithm) {
  switch (call.function) {
    case Function::kBroadcast:
    case Function::kReduce: return algorithm == kRing;
    case Function::kAllGather:
    case Function::kReduceScatter:
      return algorithm == kRing || algorithm == kPat || algorithm == kNvls ||
             algorithm == kCollNetDirect;
    case Function::kAllReduce: return algorithm != kPat;
  }
  return false;
}

bool GroupHas(const Call& call, NcclAlgorithm algorithm) {
  const bool several = call.nodes > 1;
  const bool gathers_over_collnet = !several || !call.gathers() || call.machine.collnet_gathers;
  switch (algorithm) {
    case kTree:
    case kRing: return true;
    case kCollNetDirect:
      return call.collnet() && call.gpus() <= kNcclMaxDirectGpus && gathers_over_collnet;
    case kCollNetChain: return call.collnet() && call.gpus() <= kNcclMaxDirectGpus;
    case kNvls:
    case kNvlsTree:
      if (!call.machine.nvls) return false;
      if (!call.reduces_all() && call.gpus() > kNcclMaxNvlsGpus) return false;
      if (call.graphs.nvls->channels < 2) return false;
      if (algorithm == kNvlsTree) return several;
      return (!several || call.collnet()) && gathers_over_collnet;
    case kPat: return call.gpus() == 1;
  }
  return false;
}

bool HasLl128(const Call& call, const NcclGraph& graph) {
  const NcclPath farthest =
      call.machine.architecture >= NcclArchitecture::kHopper ? NcclPath::kPxn : NcclPath::kPxb;
  return graph.inter_path <= farthest && graph.intra_path <= NcclPath::kNvb;
}

bool Eligible(const Call& call, const Candidate& candidate) {
  if (!FunctionHas(call, candidate.algorithm) || !GroupHas(call, candidate.algorithm)) {
    return false;
  }
  const bool has_protocols = candidate.algorithm == kTree || candidate.algorithm == kRing;
  if (!has_protocols) return candidate.protocol == kSimple;
  return candidate.protocol != kLl128 || HasLl128(call, candidate.graph);
}

int64_t StepsOf(const Call& call) {
  switch (call.function) {
    case Function::kBroadcast:
    case Function::kReduce: return call.ranks;
    case Function::kAllGather:
    case Function::kReduceScatter: return call.ranks - 1;
    case Function::kAllReduce: return 2 * (call.ranks - 1);
  }
  return 0;
}

// Returns the channels of a ring's or tree's graph: both have the smaller number.
int64_t ChannelsOf(const Call& call, const Candidate& candidate) {
  const NcclAlgorithm algorithm = candidate.algorithm;
  if (algorithm != kRing && algorithm != kTree && algorithm != kPat) {
    return candidate.graph.channels;
  }
  return std::min(call.graphs.ring.channels, call.graphs.tree.channels);
}

// Returns the speed of a channel of NVLS or NVLS tree, in GB/s of bus bandwidth.
float NvlsSpeed(const Call& call, const Candidate& candidate) {
  const NcclGraph& graph = candidate.graph;
  const auto channels = static_cast<float>(graph.channels);
  float intra = static_cast<float>(graph.intra_speed) * kNcclNvlsEfficiency[call.architecture()] *
                (channels - 1) / channels;
  const auto gpus = static_cast<float>(call.gpus());
  intra *= call.reduces_all() ? 2.0F : (gpus - 1) / gpus;
  const bool tree = candidate.algorithm == kNvlsTree;
  const float inter =
      static_cast<float>(graph.inter_speed) * (tree && call.nodes <= 2 ? 2.0F : 1.0F);
  if (!tree) return std::min(intra, inter);
  const double cap = kNcclNvlsTreeChannelCap[call.architecture()][call.scale()];
  return std::min({intra, inter, static_cast<float>(cap)});
}

float LlCap(const Call& call) {
  if (call.nodes == 1) return static_cast<float>(kNcclLlCapOfNode[call.architecture()]);
  const bool amd = call.machine.cpu == NcclCpu::kAmd || call.machine.cpu == NcclCpu::kMixed;
  return static_cast<float>((amd ? kNcclLlCapAmd : kNcclLlCapOther)[call.scale() - 1]);
}

float RingSpeed(const Call& call, const Candidate& candidate, float speed, double channels) {
  if (candidate.protocol == kLl) return std::min(LlCap(call), static_cast<float>(speed * .5));
  if (candidate.protocol == kSimple) return speed;
  const double cap = channels * kNcclRingLl128ChannelCap[call.architecture()][call.scale()];
  return static_cast<float>(std::min(speed * .92, cap));
}

float TreeSpeed(const Call& call, const Candidate& candidate, float speed, double channels) {
  const size_t row = call.architecture();
  const size_t scale = call.scale();
  speed = static_cast<float>(std::min(speed * .92, channels * kNcclTreeChannelCap[row][scale]));
  if (candidate.protocol == kLl) {
    speed = std::min(static_cast<float>(speed / 3.8), LlCap(call));
  } else if (candidate.protocol == kLl128) {
    const double share = call.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
    const double cap = channels * kNcclTreeLl128ChannelCap[row][scale];
    speed = static_cast<float>(std::min(speed * share, cap));
  }
  return call.graphs.plain_tree ? static_cast<float>(speed * .85) : speed;
}

float CollNetDirectSpeed(const Call& call, const NcclGraph& graph, float speed) {
  const auto gpus = static_cast<float>(call.gpus());
  if (call.gathers()) {
    return gpus * std::min(static_cast<float>(graph.intra_speed),
                           static_cast<float>(graph.inter_speed) * 0.9F);
  }
  auto gpus_per_channel = static_cast<float>(gpus / static_cast<double>(graph.channels));
  gpus_per_channel -= (gpus_per_channel - 1) / 2;
  speed /= gpus_per_channel;
  const bool slower = call.machine.architecture >= NcclArchitecture::kHopper;
  return slower ? static_cast<float>(speed * .85) : speed;
}

// Returns the bus bandwidth in GB/s.
float BusSpeed(const Call& call, const Candidate& candidate) {
  const NcclGraph& graph = candidate.graph;
  const auto channels = static_cast<float>(ChannelsOf(call, candidate));
  const bool collnet =
      candidate.algorithm == kCollNetDirect || candidate.algorithm == kCollNetChain;
  const bool intra = call.nodes <= 2 || collnet;
  const float speed = channels * static_cast<float>(intra ? graph.intra_speed : graph.inter_speed);
  switch (candidate.algorithm) {
    case kTree: return TreeSpeed(call, candidate, speed, channels);
    case kRing: return RingSpeed(call, candidate, speed, channels);
    case kCollNetDirect: return CollNetDirectSpeed(call, graph, speed);
    case kCollNetChain: return speed;
    case kNvls:
    case kNvlsTree: return channels * NvlsSpeed(call, candidate);
    case kPat: return static_cast<float>(speed * .75);
  }
  return 0;
}

// Returns bytes per time, in GB/s.
float Bandwidth(const Call& call, const Candidate& candidate) {
  const float speed = BusSpeed(call, candidate);
  const NcclAlgorithm algorithm = candidate.algorithm;
  if (algorithm != kRing && call.gathers()) return speed;
  if (algorithm != kRing && algorithm != kNvls && algorithm != kNvlsTree) return speed * .5F;
  return speed *
         static_cast<float>(static_cast<double>(call.ranks) / static_cast<double>(StepsOf(call)));
}

double LinkLatency(const Call& call, NcclHardware hardware, NcclAlgorithm algorithm,
                   NcclProtocol protocol) {
  const bool power = call.machine.cpu == NcclCpu::kPower;
  if (power && hardware == NcclHardware::kPci && algorithm == kTree && protocol == kSimple) {
    algorithm = kRing;
  }
  return kNcclLinkLatency[static_cast<size_t>(hardware)][static_cast<size_t>(algorithm)]
                         [static_cast<size_t>(protocol)];
}

// Returns the least time of a step of a ring over nodes, in µs.
float NetworkOverhead(const Call& call, NcclProtocol protocol) {
  if (call.nodes == 1) return 0;
  const float overhead = call.machine.cpu == NcclCpu::kAmd ? 2.0F : 1.0F;
  return protocol == kSimple ? overhead * 3 : overhead;
}

struct StepLatencies {
  NcclHardware within;  // a node
  float intra;
  float inter;
};

StepLatencies StepLatenciesOf(const Call& call, const Candidate& candidate) {
  const auto [algorithm, protocol, graph] = candidate;
  const NcclHardware within =
      graph.intra_path == NcclPath::kNvl ? NcclHardware::kNvlink : NcclHardware::kPci;
  // With one GPU a node, nothing hides the latency of the network.
  const NcclAlgorithm between = call.gpus() == 1 ? kTree : algorithm;
  auto inter = static_cast<float>(LinkLatency(call, NcclHardware::kNetwork, between, protocol));
  const auto device = static_cast<float>(graph.inter_latency);
  inter += device;
  if (protocol == kSimple) inter += device;  // the flush
  const auto intra = static_cast<float>(LinkLatency(call, within, algorithm, protocol));
  return {within, intra, inter};
}

// Returns the latency of all steps of a ring.
float RingLatency(const Call& call, const Candidate& candidate, const StepLatencies& step) {
  const auto steps = static_cast<float>(StepsOf(call));
  if (call.gathers() || call.reduces_all()) {
    const float intra = std::max(step.intra, NetworkOverhead(call, candidate.protocol));
    const auto inter_steps = static_cast<float>((call.reduces_all() ? 2 : 1) * (call.nodes - 1));
    return (steps - inter_steps) * intra + inter_steps * step.inter;
  }
  const NcclHardware hardware = call.nodes == 1 ? step.within : NcclHardware::kNetwork;
  const auto latency = [&](NcclAlgorithm algorithm) {
    return static_cast<float>(LinkLatency(call, hardware, algorithm, candidate.protocol));
  };
  if (candidate.graph.same_channels) return latency(kRing);
  return steps * latency(candidate.protocol == kSimple ? kTree : kRing);
}

float Latency(const Call& call, const Candidate& candidate) {
  const StepLatencies step = StepLatenciesOf(call, candidate);
  const auto others = static_cast<float>(call.gpus() - 1);  // GPUs of a node
  const auto levels = static_cast<float>(std::bit_width(static_cast<uint64_t>(call.nodes)) - 1);
  const double base = kNcclBaseLatency[static_cast<size_t>(candidate.algorithm)]
                                      [static_cast<size_t>(candidate.protocol)];
  const auto total = [base](double steps) {
    return static_cast<float>(static_cast<float>(base) + steps);
  };
  switch (candidate.algorithm) {
    case kTree: return total(2 * (others * step.intra + levels * step.inter));
    case kRing: return total(RingLatency(call, candidate, step));
    case kCollNetDirect:
      return total(2 * (std::min(1.0F, others) * step.intra + others * 0.4) + step.inter);
    case kCollNetChain: return total(2 * others * step.intra + step.inter);
    case kNvls: return call.nodes > 1 ? step.intra + step.inter : step.intra;
    case kNvlsTree: return total(step.intra + 2 * levels * step.inter);
    case kPat: return total(levels * (step.inter / 3.5) + static_cast<double>(call.ranks) * 2.8);
  }
  return 0;
}

// Returns the channels of the communicator. They are twice those of the search, or more.
int64_t CommunicatorChannels(const Call& call) {
  int64_t channels = std::min(kNcclMaxChannels,
                              2 * std::min(call.graphs.ring.channels, call.graphs.tree.channels));
  if (call.collnet() && call.gpus() > 1 &&
      call.graphs.collnet_chain->intra_speed > call.graphs.collnet_chain->inter_speed) {
    channels = std::min(kNcclMaxChannels, channels + channels / 2);
  }
  if (call.machine.architecture >= NcclArchitecture::kHopper && call.nodes > 1 &&
      call.graphs.ring.intra_speed > 45 && channels < 16) {
    channels *= 2;
  }
  return channels;
}

// Returns the share of a tree's bandwidth that remains at this size.
float TreeShare(const Call& call, const Candidate& candidate) {
  if (!call.reduces_all() || call.bytes < 64) return 1;
  const auto size = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(call.bytes) >> 6) - 1);
  const bool x86 = call.machine.cpu != NcclCpu::kPower && call.machine.cpu != NcclCpu::kOther;
  const bool nvls_tree = candidate.algorithm == kNvlsTree && x86 &&
                         call.machine.architecture == NcclArchitecture::kBlackwell;
  const bool tree = candidate.algorithm == kTree;
  // NCCL uses the table's last column for NVLS trees only.
  const size_t end = nvls_tree ? kNcclTreeSizes : tree ? kNcclTreeSizes - 1 : 0;
  return size < end ? kNcclTreeShare[static_cast<size_t>(candidate.protocol)][size] : 1;
}

// Returns the factor of a ring's latency over nodes.
double RingPlateau(const Call& call, const Candidate& candidate) {
  const bool plateau = candidate.algorithm == kRing && candidate.protocol == kSimple &&
                       call.nodes > 1 && call.reduces_all() &&
                       call.bytes / (CommunicatorChannels(call) * call.ranks) >= 64;
  if (!plateau) return 1;
  return call.machine.architecture == NcclArchitecture::kVolta ? 1.9 : 1.4;
}

// Returns the time in µs.
std::optional<float> TimeOf(const Call& call, const Candidate& candidate) {
  if (!Eligible(call, candidate)) return std::nullopt;
  const float bandwidth = Bandwidth(call, candidate) * TreeShare(call, candidate);
  if (bandwidth <= 0) return std::nullopt;
  const auto latency = static_cast<float>(Latency(call, candidate) * RingPlateau(call, candidate));
  return latency + static_cast<float>(call.bytes) / (1000 * bandwidth);
}

NcclChoice Choose(const Call& call) {
  NcclChoice choice;
  choice.micros = std::numeric_limits<float>::max();
  for (size_t a = 0; a < kNcclAlgorithms; ++a) {
    const auto algorithm = static_cast<NcclAlgorithm>(a);
    const NcclGraph* graph = GraphOf(call.graphs, algorithm);
    if (graph == nullptr) continue;
    for (size_t p = 0; p < kNcclProtocols; ++p) {
      const auto protocol = static_cast<NcclProtocol>(p);
      const std::optional<float> time = TimeOf(call, {algorithm, protocol, *graph});
      choice.candidates[a][p] = time;
      if (!time || *time >= choice.micros) continue;
      choice.algorithm = algorithm;
      choice.protocol = protocol;
      choice.micros = *time;
    }
  }
  return choice;
}

std::string KnownGraphs(const NcclMachine& machine) {
  std::string known;
  for (const NcclGraphs& row : machine.graphs) {
    known += fmt::format("{}{} GPUs of {}", known.empty() ? "" : ", ",
                         row.gpus ? fmt::format("{}", *row.gpus) : "any",
                         row.several_nodes ? "each of several nodes" : "one node");
  }
  return known.empty() ? "none" : known;
}

constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxRanks = int64_t{1} << 24;
constexpr float kMaxMicros = 1e15F;

}  // namespace

std::string_view NameOf(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case kTree: return "tree";
    case kRing: return "ring";
    case kCollNetDirect: return "collnet direct";
    case kCollNetChain: return "collnet chain";
    case kNvls: return "nvls";
    case kNvlsTree: return "nvls tree";
    case kPat: return "pat";
  }
  return "";
}

std::string_view NameOf(NcclProtocol protocol) {
  switch (protocol) {
    case kLl: return "LL";
    case kLl128: return "LL128";
    case kSimple: return "simple";
  }
  return "";
}

Result<NcclChoice> ChooseNccl(const NcclMachine& machine, const NcclCollective& collective) {
  const auto& [type, ranks, nodes, bytes] = collective;
  const std::optional<Function> function = FunctionOf(type);
  if (!function) {
    return BadInput(
        fmt::format("unknown time of {} by nccl-2.30: NCCL has times of all_reduce, all_gather, "
                    "reduce_scatter, broadcast, reduce and barrier",
                    Name(type)));
  }
  if (nodes < 1 || ranks < nodes || ranks % nodes != 0 || ranks > kMaxRanks) {
    return BadInput(fmt::format(
        "nccl-2.30: found {} ranks on {} nodes, expected as many on each node", ranks, nodes));
  }
  const int64_t copies = *function == Function::kAllGather ? ranks : 1;
  if (bytes < 0 || bytes > kMaxBytes / copies) {
    return BadInput(
        fmt::format("nccl-2.30: found {} bytes, expected 0 to {}", bytes, kMaxBytes / copies));
  }
  // NCCL returns from calls without data, and copies within one rank.
  if (ranks == 1 || (bytes == 0 && type != CollectiveType::kBarrier)) return NcclChoice{};
  const NcclGraphs* graphs = machine.GraphsOf(ranks / nodes, nodes > 1);
  if (graphs == nullptr) {
    return BadInput(fmt::format(
        "unknown time of {} by nccl-2.30: missing graphs for groups of {} GPUs of {}; known: {}",
        Name(type), ranks / nodes, nodes > 1 ? "each of several nodes" : "one node",
        KnownGraphs(machine)));
  }
  // PyTorch's barrier is an all-reduce of a float.
  const int64_t input = type == CollectiveType::kBarrier ? 4 : bytes;
  const NcclChoice choice = Choose({machine, *graphs, *function, ranks, nodes, input * copies});
  if (choice.micros > kMaxMicros) {
    return BadInput(fmt::format("nccl-2.30: found {} of more than 30 years", Name(type)));
  }
  return choice;
}

}  // namespace etude
