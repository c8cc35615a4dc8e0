#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// The operators that a replay runs. Starts with the top-level operators. An operator that cannot
// run as recorded is replaced by the operators that it called. In order of entry; operators are not
// nested, except those that run beside their caller. Refers to the step and the flow.
class OperatorSelection {
 public:
  OperatorSelection(const RecordedStep& step, const DataFlow& flow);

  // Returns the operators in order of entry.
  std::span<const NodeId> nodes() const { return nodes_; }
  // Returns all top-level operators that count for coverage, including skipped ones.
  std::span<const NodeId> top() const { return top_; }

  // Restricts the selection and the counted operators to those for which `keep` returns true.
  void Keep(const std::function<bool(NodeId)>& keep);
  // Removes `node` from the selection.
  void Skip(NodeId node, std::string reason);
  // Replaces `node` by the operators that it called. Returns false without a change if it called
  // none, if they do not produce all of its results, or if `usable` is false for one of them.
  bool UseParts(NodeId node, const std::function<bool(NodeId)>& usable);

  // Adds `part`, which was called by `caller`; `caller` remains selected. Returns false if `part`
  // is already selected.
  bool RunBeside(NodeId caller, NodeId part);

  struct Skipped {
    NodeId node;
    std::string reason;
  };
  const std::vector<Skipped>& skipped() const { return skipped_; }
  // Returns the operators that were replaced by their parts.
  const std::vector<NodeId>& replaced() const { return replaced_; }
  struct Beside {
    NodeId caller;
    NodeId part;
  };
  const std::vector<Beside>& beside() const { return beside_; }
  // Returns the top-level operators that are selected completely.
  std::unordered_set<NodeId> ReplayedTop() const;

 private:
  bool PartsCover(NodeId node, std::span<const NodeId> parts) const;

  const RecordedStep& step_;
  const DataFlow& flow_;
  std::vector<NodeId> top_;
  std::vector<NodeId> nodes_;
  std::vector<Skipped> skipped_;
  std::vector<NodeId> replaced_;
  std::vector<Beside> beside_;
};

}  // namespace etude
