#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "src/base/csr.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// A node of a rank as a simulator sees it.
struct SimNode {
  NodeKind kind = NodeKind::kCompute;
  bool on_host = false;
  CollectiveType collective = CollectiveType::kUnknown;
  uint32_t dims = ~uint32_t{0};  // of the network that a collective uses: bit i for dimension i
  int64_t duration = 0;          // ns; 0: not known
  int64_t flops = 0;
  int64_t bytes = 0;  // of a message, of memory, or that a computation touches
  int64_t peer = -1;
  int64_t tag = 0;
  int64_t priority = 0;
  int64_t group = 0;  // 0: all ranks
};

// A rank's nodes by ascending id, in columns.
struct SimProgram {
  std::vector<SimNode> nodes;
  std::vector<NodeId> origin;        // of the trace
  std::vector<uint64_t> source_ids;  // of its file
  std::vector<uint32_t> waits;       // how many others a node waits for
  Csr<uint32_t> children;            // who waits for it
};

// kBadInput for a cycle, which no simulator can run.
Result<SimProgram> MakeSimProgram(const Trace& trace);

using RankGroups = std::map<int64_t, std::vector<int64_t>>;

}  // namespace etude
