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

// The operators a replay runs: at first the top-level ones; one that cannot be run as a whole, or
// not in the way it was recorded, is replaced by the operators it called. In order of entry, none
// inside another but for those that run besides their caller. Refers to the step and the flow.
class OperatorSelection {
 public:
  OperatorSelection(const RecordedStep& step, const DataFlow& flow);

  // The operators in order of entry.
  std::span<const NodeId> nodes() const { return nodes_; }
  // All top-level operators counted as such, also those skipped.
  std::span<const NodeId> top() const { return top_; }

  // Narrows the selection, and what counts, to operators for which `keep` holds.
  void Keep(const std::function<bool(NodeId)>& keep);
  // Takes `node` out of the selection.
  void Skip(NodeId node, std::string reason);
  // Puts the operators that `node` called in its place. False, and no change, if it called none,
  // if one of its results is none of theirs, or if `usable` does not hold for each of them.
  bool UseParts(NodeId node, const std::function<bool(NodeId)>& usable);

  // Adds `part`, an operator that `caller` called, which is in the selection and stays there. False
  // if `part` is there already.
  bool RunBeside(NodeId caller, NodeId part);

  struct Skipped {
    NodeId node;
    std::string reason;
  };
  const std::vector<Skipped>& skipped() const { return skipped_; }
  // Operators that were replaced by their parts.
  const std::vector<NodeId>& replaced() const { return replaced_; }
  struct Beside {
    NodeId caller;
    NodeId part;
  };
  const std::vector<Beside>& beside() const { return beside_; }
  // Top-level operators of which every part is in the selection.
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
