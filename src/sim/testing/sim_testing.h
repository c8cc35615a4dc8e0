#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

// For tests only.
namespace etude::testing_sim {

// `group`: 0, or the number of a group of the rank, counted from 1.
inline SimNode CollectiveNode(CollectiveType type, int64_t bytes, uint32_t group = 0) {
  return {.kind = NodeKind::kCollective, .collective = type, .group = group, .bytes = bytes};
}

// Makes a program of nodes with the dependencies of each.
inline SimProgram ProgramOf(std::vector<SimNode> nodes,
                            const std::vector<std::vector<uint32_t>>& befores) {
  SimProgram program;
  program.nodes = std::move(nodes);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    program.origin.push_back(NodeId::FromIndex(i));
    program.source_ids.push_back(i);
    program.waits.push_back(static_cast<uint32_t>(befores[i].size()));
    for (const uint32_t before : befores[i]) edges.emplace_back(before, i);
  }
  program.children = Csr<uint32_t>::Build(
      program.nodes.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return program;
}

inline SimRank RankOf(SimProgram program, std::vector<int64_t> groups = {},
                      std::vector<int64_t> peers = {}) {
  return {.program = std::make_shared<const SimProgram>(std::move(program)),
          .groups = std::move(groups),
          .peers = std::move(peers)};
}

// Makes a machine with LIFO order, four chunks and 50 GB/s of local memory bandwidth.
inline SimMachine MachineOf(std::vector<NetworkDim> dims, CollectiveAlgorithm algorithm,
                            std::optional<int64_t> window = std::nullopt) {
  SimMachine machine;
  machine.dims = std::move(dims);
  machine.system = {.order = StreamOrder::kLifo, .splits = 4, .memory_bandwidth = 50};
  for (const CollectiveType type : {CollectiveType::kAllReduce, CollectiveType::kAllGather,
                                    CollectiveType::kReduceScatter, CollectiveType::kAllToAll}) {
    machine.system.algorithms[type].assign(machine.dims.size(),
                                           {.algorithm = algorithm, .window = window});
  }
  return machine;
}

}  // namespace etude::testing_sim
