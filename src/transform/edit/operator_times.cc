#include "src/transform/edit/operator_times.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/base/units.h"
#include "src/run/exclusive_times.h"
#include "src/run/step/recorded_step.h"
#include "src/transform/edit/retime.h"

namespace etude {
namespace {

class OperatorRetimer {
 public:
  OperatorRetimer(const Trace& recorded, const Trace& edited, const std::vector<bool>& is_estimated,
                  bool all, const OperatorSources& sources)
      : recorded_(recorded),
        edited_(edited),
        is_estimated_(is_estimated),
        all_(all),
        sources_(sources),
        own_(SelfTimes(recorded)),
        edited_own_(SelfTimes(edited)),
        longer_(recorded.node_count()) {}

  Result<OperatorTimesEdit> Run(const Limits& limits) {
    ForEachNode(recorded_, [&](NodeId node) {
      if (IsHostOperator(node) && !IsBelowOperator(node)) Count(node);
    });
    ETUDE_ASSIGN_OR_RETURN(result_.trace, Retime(edited_, longer_, limits));
    return std::move(result_);
  }

 private:
  bool IsHostOperator(NodeId node) const {
    return recorded_.place(node) != Place::kDevice && IsOperator(recorded_, node) &&
           recorded_.kind(node) == NodeKind::kOperator;
  }
  bool IsBelowOperator(NodeId node) const {
    for (NodeId above = recorded_.parent(node); above; above = recorded_.parent(above)) {
      if (IsHostOperator(above)) return true;
    }
    return false;
  }

  // Gives new times to an outermost operator, or to those that it calls.
  void Count(NodeId outermost) {
    bool is_measured = false;
    bool is_missing = false;
    bool has_ratio = true;
    std::vector<NodeId> open = {outermost};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (IsWanted(node)) {
        if (const std::optional<Factor> factor = FactorOf(node)) {
          Scale(node, factor->value);
          is_measured = true;
          has_ratio = has_ratio && factor->is_ratio;
          continue;
        }
        is_missing = is_missing || !HasWantedParts(node);
      }
      PushCallees(node, open);
    }
    if (!is_missing && !is_measured) return;
    const Nanos time = TimeOf(outermost);
    result_.wanted_time = result_.wanted_time + time;
    if (is_missing) {
      ++(HasEstimate(outermost) ? result_.estimated : result_.kept);
      ++result_.missing[std::string(OperatorNameOf(recorded_, outermost))];
    } else {
      ++result_.measured;
      result_.measured_time = result_.measured_time + time;
      if (!has_ratio) ++result_.without_ratio;
    }
  }

  void PushCallees(NodeId node, std::vector<NodeId>& nodes) const {
    for (const NodeId child : recorded_.children(node)) {
      if (recorded_.place(child) != Place::kDevice) nodes.push_back(child);
    }
  }
  // Returns a host node and everything on the host inside of it.
  std::vector<NodeId> Inside(NodeId node) const {
    std::vector<NodeId> nodes = {node};
    for (size_t i = 0; i < nodes.size(); ++i) PushCallees(nodes[i], nodes);
    return nodes;
  }

  // Returns the recorded time of a node and of everything on the host inside of it.
  Nanos TimeOf(NodeId node) const {
    Nanos time;
    for (const NodeId part : Inside(node)) time = time + own_[part.index()].value_or(Nanos{});
    return time;
  }

  bool IsWanted(NodeId node) const {
    return IsHostOperator(node) && (all_ || KeyOf(recorded_, node) != KeyOf(edited_, node));
  }
  bool HasWantedParts(NodeId node) const {
    const std::vector<NodeId> inside = Inside(node);
    return std::any_of(inside.begin() + 1, inside.end(),
                       [&](NodeId part) { return IsWanted(part); });
  }
  bool HasEstimate(NodeId node) const {
    return !is_estimated_.empty() && std::ranges::any_of(Inside(node), [&](NodeId part) {
      return is_estimated_[part.index()];
    });
  }

  // New time of an operator by its recorded time.
  struct Factor {
    double value = 1;
    bool is_ratio = false;  // of two measured times
  };
  std::optional<Factor> FactorOf(NodeId node) const {
    const auto after = KeyOf(edited_, node);
    const MeasuredCall* time = after ? sources_.times.Find(*after) : nullptr;
    if (time == nullptr || time->noisy) return std::nullopt;
    const auto before = KeyOf(recorded_, node);
    const MeasuredCall* old = before ? sources_.recorded.Find(*before) : nullptr;
    if (old != nullptr && !old->noisy) return Factor{time->time_ns / old->time_ns, true};
    const Nanos recorded = TimeOf(node);
    if (recorded <= Nanos{}) return std::nullopt;
    return Factor{time->time_ns / static_cast<double>(recorded.count), false};
  }

  void Scale(NodeId node, double factor) {
    for (const NodeId part : Inside(node)) {
      const auto& own = own_[part.index()];
      const auto& edited = edited_own_[part.index()];
      if (!own || !edited) continue;
      const double wanted = static_cast<double>(own->count) * factor;
      longer_[part.index()] = Nanos{std::llround(wanted) - edited->count};
    }
  }

  const Trace& recorded_;
  const Trace& edited_;
  const std::vector<bool>& is_estimated_;
  bool all_;
  const OperatorSources& sources_;
  const std::vector<std::optional<Nanos>> own_;
  const std::vector<std::optional<Nanos>> edited_own_;
  std::vector<Nanos> longer_;
  OperatorTimesEdit result_;
};

}  // namespace

std::set<OperatorKey> ChangedOperators(const Trace& recorded, const Trace& edited) {
  std::set<OperatorKey> keys;
  ForEachNode(recorded, [&](NodeId node) {
    auto before = KeyOf(recorded, node);
    auto after = KeyOf(edited, node);
    if (before == after) return;
    if (before) keys.insert(*std::move(before));
    if (after) keys.insert(*std::move(after));
  });
  return keys;
}

Result<OperatorTimesEdit> WithOperatorTimes(const Trace& recorded, const Trace& edited,
                                            const std::vector<bool>& is_estimated, bool all,
                                            const OperatorSources& sources, const Limits& limits) {
  return OperatorRetimer(recorded, edited, is_estimated, all, sources).Run(limits);
}

}  // namespace etude
