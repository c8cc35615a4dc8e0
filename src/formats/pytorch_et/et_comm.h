#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/formats/profile/comm_facts.h"
#include "src/run/calls/label_calls.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Name of the nodes in which PyTorch records a communication's facts, and of the node that lists
// the job's process groups.
inline constexpr std::string_view kRecordParamComms = "record_param_comms";
inline constexpr std::string_view kProcessGroupInit = "## process_group:init ##";

// Finds the communications of an execution trace and gives each its Comm. One host node per
// communication carries it: record_param_comms, or the backend's label if that is missing (Gloo),
// or the c10d call if the label is lost. Device nodes of linked traces carry inherited
// communications. Not thread-safe; the builder must outlive it.
class EtCommReader {
 public:
  explicit EtCommReader(TraceBuilder& builder) : builder_(builder) {}

  // To be called for each node, after it was added with `row`. `facts` are those of its attributes
  // and are completed from its arguments. Facts that are not `any` (the group around a backend's
  // label) apply only if the node is a communication. `control_deps`: source ids of its control
  // dependencies, which identify the call of a backend's label.
  void Add(NodeId node, const NodeRow& row, CommFacts facts,
           std::span<const uint64_t> control_deps = {});
  // Resolves facts that depend on later nodes, and adds the dependencies of backends' labels on
  // their calls. To be called once, before TraceBuilder::Finish.
  void Finish();
  // After that: the call that asked for the label with this source id; nullptr if unknown.
  const IssuedCall* CallOf(uint64_t label) const;

 private:
  void AddStated(NodeId node, const CommFacts& facts);
  void AddCall(NodeId node, const NodeRow& row, const CommFacts& facts);
  void FindCalls();
  void AddCallsWithoutLabel();
  void TakeFromCall(BackendLabel& label, const IssuedCall& call);
  // Once all groups are known.
  std::optional<int64_t> RankOfJob(StringId group, int64_t rank_in_group);
  std::optional<int64_t> RankOfJob(const ProcessGroup& group, int64_t rank_in_group) const;
  std::optional<int64_t> RankInAll(int64_t rank_in_group) const;
  std::optional<int64_t> SizeOf(StringId group) const;  // nullopt: unknown
  void AddRecorded(NodeId node, const NodeRow& row, CommFacts& facts);
  void AddKernel(NodeId node, const NodeRow& row, CommFacts& facts);
  void AddLabel(NodeId node, const NodeRow& row, std::string_view communication, CommFacts facts,
                std::span<const uint64_t> control_deps);
  void AddGroups(const NodeRow& row);
  // Facts in the positional arguments of record_param_comms that `CommFacts` represents
  // differently.
  struct Arguments {
    std::optional<int64_t> group;  // its number, if the group is given by that only
    std::optional<int64_t> peer;   // of a send or receive: its rank in the group
  };
  // Completes `facts` from the arguments.
  Arguments ReadArguments(const NodeRow& row, CommFacts& facts) const;
  std::optional<int64_t> ReadGroup(const Value& value, CommFacts& facts) const;
  // Returns the peer's rank in the group, if the argument is one.
  std::optional<int64_t> ReadRank(const Value& value, CommFacts& facts) const;
  void SetComm(NodeId node, const Comm& comm, const Arguments& arguments);
  std::optional<int64_t> IntAt(std::span<const Value> values, size_t index) const;
  std::vector<int64_t> IntsOf(const Value& list) const;

  TraceBuilder& builder_;
  // Names of groups by number, as used in traces of version 1.0.2.
  std::unordered_map<int64_t, StringId> groups_by_number_;
  // Facts that depend on a group that may be defined later: the group itself, or the peer's rank in
  // the job.
  struct Unsettled {
    NodeId node;
    Comm comm;
    Arguments arguments;
  };
  std::vector<Unsettled> unsettled_;
  std::unordered_map<int64_t, std::optional<int64_t>> ranks_in_all_;  // RankInAll, by its argument
  std::vector<BackendLabel> labels_;
  bool has_stated_ = false;  // whether attributes state a node's communication
  std::vector<IssuedCall> calls_;
  CallsOfLabels found_;                 // of labels_ and calls_
  std::vector<uint64_t> recorded_ids_;  // source ids of record_param_comms
};

}  // namespace etude
