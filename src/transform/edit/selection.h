#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Selected part of a trace: docs/selection.md. A node is in it if at least one filter of each given
// kind matches. Filters are texts, as on the command line and in recipes.
struct Selection {
  std::vector<std::string> labels;   // part of a name: nodes with it, and all below
  std::vector<std::string> steps;    // "3", "ProfilerStep#3", or "FROM..TO"; either end is optional
  std::vector<std::string> threads;  // name or number of a host thread
  std::vector<std::string> streams;  // "7", or "0:7" for that of device 0
  std::vector<std::string> modules;  // name or class of a module
  std::vector<std::string> times;    // "FROM..TO" since the trace's begin; either end is optional
  std::vector<std::string> operators;  // name, with "*" for any text: the nodes, and all below
  std::vector<std::string> phases;     // "forward", "backward", "optimizer", "prefill", "decode"
  std::vector<std::string> micro_batches;  // numbers, for traces with stated parts
  bool communication = false;              // collectives, sends and receives, and all below
  std::string_view sigil = "--";           // prefix of a filter's kind in messages

  bool empty() const {
    return labels.empty() && steps.empty() && threads.empty() && streams.empty() &&
           modules.empty() && times.empty() && operators.empty() && phases.empty() &&
           micro_batches.empty() && !communication;
  }
};

struct SelectedNodes {
  std::vector<bool> nodes;  // by node
  uint64_t count = 0;
  uint64_t untimed = 0;  // nodes excluded by `times` because their times are unknown
};

// Returns true if `pattern` (see Selection::operators) matches the name of the node, or that of its
// schema.
bool IsNamed(const Trace& trace, NodeId node, std::string_view pattern);

// Returns the nodes of `trace` in `selection`; all if it is empty. Device work belongs to the
// threads, steps and operators that launched it. kUsage for a filter of the wrong form, for an
// unknown name (with the nearest known one), and if nothing is left.
Result<SelectedNodes> SelectNodes(const Trace& trace, const Selection& selection);

}  // namespace etude
