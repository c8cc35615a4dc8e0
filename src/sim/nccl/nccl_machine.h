#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace etude {

// NCCL's generations of GPUs, by compute capability: 7.x and older, 8.x, 9.x, 10.x and newer.
enum class NcclArchitecture : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

// Processors of the hosts, as far as NCCL distinguishes them. kMixed: of several vendors.
enum class NcclCpu : uint8_t { kIntel, kAmd, kMixed, kOtherX86, kPower, kOther };

// Kinds of paths from the nearest to the farthest, in NCCL's order and with its names.
enum class NcclPath : uint8_t {
  kLoc,
  kNvl,
  kNvb,
  kC2c,
  kPix,
  kPxb,
  kP2c,
  kPxn,
  kPhb,
  kSys,
  kNet,
  kDis,
};

// Result of NCCL's search for the channels of an algorithm: a line "Pattern …, nChannels …" of its
// log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=GRAPH).
struct NcclGraph {
  int64_t channels = 0;
  double intra_speed = 0;  // of a channel within a node, in GB/s (10⁹ bytes)
  double inter_speed = 0;  // of a channel between nodes
  NcclPath intra_path = NcclPath::kNvl;
  NcclPath inter_path = NcclPath::kPix;
  double inter_latency = 0;  // of the network device, in µs; 0 for NCCL's own networks
  bool same_channels = true;
};

// Graphs of the groups with a number of GPUs in each of their nodes.
struct NcclGraphs {
  std::optional<int64_t> gpus;  // in each node; nullopt: any number
  bool several_nodes = false;
  NcclGraph ring;
  NcclGraph tree;                 // also of PAT
  bool plain_tree = false;        // NCCL's pattern 3, where one GPU of a node uses the network
  std::optional<NcclGraph> nvls;  // nullopt: NCCL does not use NVLink SHARP
  // Channels over a network with SHARP; nullopt without. Only for several nodes, and only both.
  std::optional<NcclGraph> collnet_direct;
  std::optional<NcclGraph> collnet_chain;
};

// Messages of GPUs in a node, or of GPUs in different nodes.
struct NcclLink {
  double latency = 0;    // µs
  double bandwidth = 0;  // of a GPU in each direction, in GB/s (10⁹ bytes)
};

// Messages, of which NCCL has no times.
struct NcclMessages {
  NcclLink within;                  // a node
  std::optional<NcclLink> between;  // nodes; nullopt: unknown
};

// Facts that NCCL's choice of algorithms depends on.
struct NcclMachine {
  NcclArchitecture architecture = NcclArchitecture::kHopper;
  NcclCpu cpu = NcclCpu::kOther;
  int64_t gpus_per_node = 0;
  bool nvls = true;  // NCCL may use NVLink SHARP; false: NCCL_NVLS_ENABLE=0
  // The network's plugin has all-gather and reduce-scatter, and each GPU has its network device.
  bool collnet_gathers = false;
  std::vector<NcclGraphs> graphs;
  std::optional<NcclMessages> messages;  // nullopt: unknown

  // Returns the first row for groups with this number of GPUs in each of their nodes, or nullptr.
  const NcclGraphs* GraphsOf(int64_t gpus, bool several_nodes) const;
};

std::string_view NameOf(NcclArchitecture architecture);
std::string_view NameOf(NcclCpu cpu);
std::string_view NameOf(NcclPath path);

// Machines by name. docs/models/nccl.md has their sources.
struct NcclPreset {
  std::string_view name;
  NcclMachine machine;
};
std::vector<NcclPreset> NcclPresets();

}  // namespace etude
