#pragma once

#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// A kernel that communicates, of which no id says who asked for it.
struct StrayKernel {
  NodeId node;
  LaneId stream;
  Nanos start;
  Nanos end;
  CollectiveType type = CollectiveType::kUnknown;  // by its name
};

// A call of the host that asked for a communication, without a kernel.
struct StrayCall {
  NodeId node;
  StringId group;
  Nanos start;
  CollectiveType type = CollectiveType::kUnknown;
};

struct OrderedPair {
  NodeId kernel;
  NodeId call;
};

// Pairs kernels and calls by their order: a stream's kernels with a group's calls where these are
// as many, of the same types, and no kernel is over before its call begins, and where that holds
// for no other stream, or no other group; then the kernels of a single stream with the calls of all
// groups that are left, or those of all streams with the calls of a single group. The rest stays
// alone.
std::vector<OrderedPair> PairByOrder(std::vector<StrayKernel> kernels,
                                     std::vector<StrayCall> calls);

}  // namespace etude
