#include "src/replay/values/gradients_to_come.h"

#include <algorithm>
#include <cstddef>

#include "src/run/step/updated_tensors.h"

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
        given_at_(flow.version_count()),
        has_gradient_(plan.slots.size()),
        filled_at_(plan.slots.size()) {}

  void Run() {
    FindParameters();
    for (PlannedOp& op : plan_.ops) {
      ++now_;
      op.differentiated.clear();
      for (const SlotId slot : op.derive) {
        has_gradient_[slot.index()] = HasGradient(plan_.slots[slot.index()].base);
        filled_at_[slot.index()] = now_;
      }
      if (MadeNodes(op)) PlanOne(op);
      for (const SlotId slot : op.results) {
        if (slot) filled_at_[slot.index()] = now_;
      }
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
    if (found) return;
    for (const OutsideStorage& outside : plan_.outside) {
      is_parameter_[outside.version.index()] = true;
    }
  }

  bool HasGradient(SlotId id) const {
    const Slot& slot = plan_.slots[id.index()];
    const uint32_t given = given_at_[slot.version.index()];
    return has_gradient_[id.index()] || (given != 0 && filled_at_[id.index()] < given) ||
           (slot.source == SlotSource::kOutside && is_parameter_[slot.version.index()]);
  }

  // Returns whether argument `i` had a gradient to come. A parameter's slot may be a view of the
  // same form that the step made, if the parameter itself was not seen before.
  bool HasGradient(const PlannedOp& op, size_t i) const {
    const Slot& slot = plan_.slots[op.inputs[i].index()];
    const TensorId recorded = flow_.inputs(op.node)[i].tensor;
    const Trace& trace = step_.trace();
    return HasGradient(op.inputs[i]) ||
           (is_parameter_[slot.version.index()] &&
            trace.tensor(recorded).tensor != trace.tensor(slot.tensor).tensor);
  }

  void PlanOne(PlannedOp& op) {
    const auto add = [&](auto has_gradient) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const SlotId slot = op.inputs[i];
        if (slot && has_gradient(i) &&
            std::ranges::find(op.differentiated, slot) == op.differentiated.end()) {
          op.differentiated.push_back(slot);
        }
      }
    };
    add([&](size_t i) { return HasGradient(op, i); });
    // At least one must have had one, for example the result of a Python function whose operators
    // make no nodes.
    if (op.differentiated.empty()) add([](size_t) { return true; });
    const std::vector<bool> updated = updated_.Of(op.node);
    for (size_t i = 0; i < op.inputs.size() && i < updated.size(); ++i) {
      if (!op.inputs[i] || !updated[i]) continue;
      has_gradient_[op.inputs[i].index()] = true;
      given_at_[plan_.slots[op.inputs[i].index()].version.index()] = now_;
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
  uint32_t now_ = 0;                // operators so far, including the current one
  std::vector<bool> is_parameter_;  // by version
  // By version: when its memory got a gradient, through any view. 0: never.
  std::vector<uint32_t> given_at_;
  std::vector<bool> has_gradient_;   // by slot
  std::vector<uint32_t> filled_at_;  // by slot; 0: outside, or not filled yet
};

}  // namespace

void PlanGradients(const RecordedStep& step, const DataFlow& flow,
                   const std::vector<bool>& made_nodes, ReplayPlan& plan) {
  GradientPlanner(step, flow, made_nodes, plan).Run();
}

}  // namespace etude
