#include "src/replay/gradients_to_come.h"

#include <algorithm>
#include <cstddef>

#include "src/replay/updated_tensors.h"

namespace etude {
namespace {

class GradientPlanner {
 public:
  GradientPlanner(const RecordedStep& step, const DataFlow& flow,
                  const std::vector<bool>& made_nodes, ReplayPlan& plan)
      : step_(step),
        flow_(flow),
        made_nodes_(made_nodes),
        plan_(plan),
        updated_(step.trace()),
        is_parameter_(flow.version_count()),
        has_gradient_(plan.slots.size()) {}

  void Run() {
    FindParameters();
    for (PlannedOp& op : plan_.ops) {
      op.differentiated.clear();
      for (const SlotId slot : op.derive) {
        has_gradient_[slot.index()] = HasGradient(plan_.slots[slot.index()].base);
      }
      if (MadeNodes(op)) PlanOne(op);
    }
  }

 private:
  bool MadeNodes(const PlannedOp& op) const { return made_nodes_[step_.position(op.node)]; }

  void FindParameters() {
    std::vector<bool> is_changed(flow_.version_count());
    std::vector<bool> is_read(flow_.version_count());
    for (const PlannedOp& op : plan_.ops) {
      const bool made_nodes = MadeNodes(op);
      const auto uses = flow_.inputs(op.node);
      const std::vector<bool> updated = updated_.Of(op.node);
      for (size_t i = 0; i < uses.size(); ++i) {
        if (!uses[i].version) continue;
        if (made_nodes) is_read[uses[i].version.index()] = true;
        if (!made_nodes && i < updated.size() && updated[i]) {
          is_changed[uses[i].version.index()] = true;
        }
      }
    }
    bool found = false;
    for (const OutsideStorage& outside : plan_.outside) {
      const size_t version = outside.version.index();
      is_parameter_[version] = is_read[version] && is_changed[version];
      found |= is_parameter_[version];
    }
    if (!found) is_parameter_.assign(is_parameter_.size(), true);
  }

  bool HasGradient(SlotId id) const {
    const Slot& slot = plan_.slots[id.index()];
    return has_gradient_[id.index()] ||
           (slot.source == SlotSource::kOutside && is_parameter_[slot.version.index()]);
  }

  void PlanOne(PlannedOp& op) {
    const std::vector<bool> updated = updated_.Of(op.node);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const SlotId slot = op.inputs[i];
      if (!slot) continue;
      if (HasGradient(slot) &&
          std::ranges::find(op.differentiated, slot) == op.differentiated.end()) {
        op.differentiated.push_back(slot);
      }
      if (i < updated.size() && updated[i]) has_gradient_[slot.index()] = true;
    }
    for (const SlotId slot : op.results) {
      if (slot) has_gradient_[slot.index()] = true;
    }
  }

  const RecordedStep& step_;
  const DataFlow& flow_;
  const std::vector<bool>& made_nodes_;
  ReplayPlan& plan_;
  UpdatedTensors updated_;
  std::vector<bool> is_parameter_;  // by version
  std::vector<bool> has_gradient_;  // by slot
};

}  // namespace

void PlanGradients(const RecordedStep& step, const DataFlow& flow,
                   const std::vector<bool>& made_nodes, ReplayPlan& plan) {
  GradientPlanner(step, flow, made_nodes, plan).Run();
}

}  // namespace etude
