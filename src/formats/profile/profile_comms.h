#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/formats/profile/comm_order.h"
#include "src/formats/profile/profiler_event.h"
#include "src/trace/trace_builder.h"

namespace etude {

// The communications of a profile: their nodes, types and sizes. Kernels for which the profiler
// records neither (before PyTorch 2.2) get them from the calls that launched them. Not thread-safe.
class ProfileComms {
 public:
  explicit ProfileComms(TraceBuilder& builder) : builder_(builder) {}

  // Finds the event's facts about a communication. Changes the kind of the row, which is or becomes
  // that of `node`. Returns nullopt without such facts. May be called again for a node when more is
  // known.
  std::optional<Comm> Settle(NodeId node, NodeRow& row, ProfilerEvent& event);

  // Returns whether Finish needs parents.
  bool needs_parents() const { return !labels_.empty() || !silent_.empty(); }
  // Sets the facts that follow from other nodes, after all nodes were added. `parent_of`: by host
  // node, empty if not needed.
  void Finish(const std::vector<NodeId>& parent_of);

 private:
  using Launches = std::unordered_map<int64_t, NodeId>;  // by correlation

  void SettleLabels(const std::vector<NodeId>& parent_of);
  void FillFromCalls(const std::vector<NodeId>& parent_of);
  void FillByOrder(const std::vector<NodeId>& kernels, const Launches& launches,
                   const std::vector<NodeId>& parent_of);
  void FillFromAll(const std::vector<StrayKernel>& kernels, const std::vector<StrayCall>& calls);
  void FillFrom(NodeId call_node, NodeId kernel, const Comm& own);
  NodeId CallAround(NodeId node, const std::vector<NodeId>& parent_of) const;
  std::vector<StrayKernel> StrayKernels(const std::vector<NodeId>& kernels) const;

  TraceBuilder& builder_;
  // Host nodes with the name of a backend's communication, and their facts.
  std::vector<std::pair<NodeId, Comm>> labels_;
  std::unordered_map<NodeId, Comm> calls_;  // host nodes that represent a communication
  // Kernels for which the profiler records only that they communicate, and the facts in their
  // names.
  std::map<NodeId, Comm> silent_;
};

}  // namespace etude
