#include "src/sim/nccl/nccl_machine.h"

#include <algorithm>

namespace etude {
namespace {

// Eight GPUs with 18 NVLinks each to a switch: H100 and H20.
NcclGraphs HopperNode() {
  const NcclGraph ring = {.channels = 12, .intra_speed = 30, .inter_speed = 30};
  const NcclGraph nvls = {
      .channels = 8, .intra_speed = 40, .inter_speed = 60, .same_channels = false};
  return {.gpus = 8, .ring = ring, .tree = ring, .nvls = nvls};
}

// Eight GPUs with 12 NVLinks each to a switch.
NcclGraphs AmpereNode() {
  const NcclGraph ring = {.channels = 12, .intra_speed = 20, .inter_speed = 20};
  return {.gpus = 8, .ring = ring, .tree = ring};
}

}  // namespace

const NcclGraphs* NcclMachine::GraphsOf(int64_t gpus, bool several_nodes) const {
  const auto found = std::ranges::find_if(graphs, [&](const NcclGraphs& row) {
    return row.several_nodes == several_nodes && row.gpus.value_or(gpus) == gpus;
  });
  return found == graphs.end() ? nullptr : &*found;
}

std::string_view NameOf(NcclArchitecture architecture) {
  switch (architecture) {
    case NcclArchitecture::kVolta: return "volta";
    case NcclArchitecture::kAmpere: return "ampere";
    case NcclArchitecture::kHopper: return "hopper";
    case NcclArchitecture::kBlackwell: return "blackwell";
  }
  return "";
}

std::string_view NameOf(NcclCpu cpu) {
  switch (cpu) {
    case NcclCpu::kIntel: return "intel";
    case NcclCpu::kAmd: return "amd";
    case NcclCpu::kMixed: return "mixed";
    case NcclCpu::kOtherX86: return "other-x86";
    case NcclCpu::kPower: return "power";
    case NcclCpu::kOther: return "other";
  }
  return "";
}

std::string_view NameOf(NcclPath path) {
  switch (path) {
    case NcclPath::kLoc: return "LOC";
    case NcclPath::kNvl: return "NVL";
    case NcclPath::kNvb: return "NVB";
    case NcclPath::kC2c: return "C2C";
    case NcclPath::kPix: return "PIX";
    case NcclPath::kPxb: return "PXB";
    case NcclPath::kP2c: return "P2C";
    case NcclPath::kPxn: return "PXN";
    case NcclPath::kPhb: return "PHB";
    case NcclPath::kSys: return "SYS";
    case NcclPath::kNet: return "NET";
    case NcclPath::kDis: return "DIS";
  }
  return "";
}

std::vector<NcclPreset> NcclPresets() {
  return {
      {"dgx-a100",
       {.architecture = NcclArchitecture::kAmpere,
        .cpu = NcclCpu::kAmd,
        .gpus_per_node = 8,
        .graphs = {AmpereNode()}}},
      {"dgx-h100",
       {.architecture = NcclArchitecture::kHopper,
        .cpu = NcclCpu::kIntel,
        .gpus_per_node = 8,
        .graphs = {HopperNode()}}},
      {"h20-8",
       {.architecture = NcclArchitecture::kHopper,
        .cpu = NcclCpu::kIntel,
        .gpus_per_node = 8,
        .graphs = {HopperNode()}}},
  };
}

}  // namespace etude
