#pragma once

#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// A kernel that communicates, without an id that leads to the call that requested it.
struct StrayKernel {
  NodeId node;
  LaneId stream;
  Nanos start;
  Nanos end;
  CollectiveType type = CollectiveType::kUnknown;  // by its name
};

// A host call that requested a communication, without a kernel.
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

// Pairs kernels and calls by their order. A stream's kernels are paired with a group's calls if
//
// - both have the same number and the same types,
// - no kernel ends before its call begins, and
// - this holds for no other stream, or for no other group.
//
// Then the kernels of a single stream are paired with the remaining calls of all groups, or those
// of all streams with the calls of a single group. All others stay unpaired.
std::vector<OrderedPair> PairByOrder(std::vector<StrayKernel> kernels,
                                     std::vector<StrayCall> calls);

}  // namespace etude
