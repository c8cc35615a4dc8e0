// Reads groups and collectives as lines of numbers (compare.py writes them), and prints a line with
// NCCL's choice and the times of all candidates for each.

#include <array>
#include <cstdint>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "src/sim/nccl/nccl_choice.h"

namespace etude {
namespace {

template <typename Enum>
Enum ReadEnum(std::istream& in) {
  int value = 0;
  in >> value;
  return static_cast<Enum>(value);
}

NcclGraph ReadGraph(std::istream& in) {
  NcclGraph graph;
  in >> graph.channels >> graph.intra_speed >> graph.inter_speed;
  graph.intra_path = ReadEnum<NcclPath>(in);
  graph.inter_path = ReadEnum<NcclPath>(in);
  in >> graph.inter_latency >> graph.same_channels;
  return graph;
}

std::optional<NcclGraph> ReadOptionalGraph(std::istream& in) {
  const NcclGraph graph = ReadGraph(in);
  return graph.channels == 0 ? std::nullopt : std::optional(graph);
}

void Print(const NcclChoice& choice) {
  std::cout << NameOf(choice.algorithm) << ',' << NameOf(choice.protocol) << ',' << choice.micros;
  for (const auto& row : choice.candidates) {
    for (const std::optional<float>& time : row) std::cout << ',' << time.value_or(-1);
  }
  std::cout << '\n';
}

int Run() {
  constexpr std::array kTypes = {CollectiveType::kBroadcast, CollectiveType::kReduce,
                                 CollectiveType::kAllGather, CollectiveType::kReduceScatter,
                                 CollectiveType::kAllReduce};
  std::cout.precision(9);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    NcclMachine machine;
    NcclCollective collective;
    size_t type = 0;
    machine.architecture = ReadEnum<NcclArchitecture>(in);
    machine.cpu = ReadEnum<NcclCpu>(in);
    in >> machine.collnet_gathers >> collective.ranks >> collective.nodes >> type >>
        collective.bytes;
    NcclGraphs graphs;
    graphs.several_nodes = collective.nodes > 1;
    in >> graphs.plain_tree;
    graphs.ring = ReadGraph(in);
    graphs.tree = ReadGraph(in);
    graphs.nvls = ReadOptionalGraph(in);
    graphs.collnet_direct = ReadOptionalGraph(in);
    graphs.collnet_chain = ReadOptionalGraph(in);
    machine.graphs = {graphs};
    if (!in || type >= kTypes.size()) return 2;
    collective.type = kTypes[type];
    const Result<NcclChoice> choice = ChooseNccl(machine, collective);
    if (!choice) {
      std::cerr << choice.error().message << '\n';
      return 3;
    }
    Print(*choice);
  }
  return 0;
}

}  // namespace
}  // namespace etude

int main() { return etude::Run(); }
