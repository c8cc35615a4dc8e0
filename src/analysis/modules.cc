#include "src/analysis/modules.h"

#include <algorithm>
#include <unordered_map>

#include "src/analysis/recorded_step.h"
#include "src/formats/et_comm.h"
#include "src/trace/module_name.h"
#include "src/trace/operator_name.h"
#include "src/trace/record_scope.h"

namespace etude {
namespace {

bool IsModule(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && IsModuleLabel(trace.name(node));
}

// Labels of the profiler's other categories (Python's frames, overhead) keep their category.
bool HasCategory(const Trace& trace, NodeId node) {
  return std::ranges::any_of(
      trace.extras(node), [&](const Extra& extra) { return trace.text(extra.key) == "event/cat"; });
}

bool IsUserLabel(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && trace.place(node) == Place::kHost &&
         trace.scope(node).value_or(kUserScope) == kUserScope && !IsStepMark(trace.name(node)) &&
         !IsCommLabel(trace.name(node)) && !HasCategory(trace, node);
}

// Backward work says on which thread its forward operator ran.
bool IsBackward(const Trace& trace, NodeId node) {
  return trace.seq_id(node).value_or(-1) >= 0 && trace.fw_tid(node).value_or(0) != 0;
}
bool IsForward(const Trace& trace, NodeId node) {
  return trace.seq_id(node).value_or(-1) >= 0 && trace.fw_tid(node).value_or(0) == 0;
}

class Finder {
 public:
  Finder(const Trace& trace, std::vector<StringId>& modules) : trace_(trace), modules_(modules) {
    ForEachNode(trace, [&](NodeId node) { has_modules_ |= IsModule(trace, node); });
  }

  void Run(const Launches& launches) {
    Descend([&](NodeId node) { return OwnLabel(node); });
    if (has_modules_) {
      std::unordered_map<int64_t, StringId> forward;
      ForEachNode(trace_, [&](NodeId node) {
        if (IsForward(trace_, node) && modules_[node.index()]) {
          forward.emplace(*trace_.seq_id(node), modules_[node.index()]);
        }
      });
      Descend([&](NodeId node) {
        if (modules_[node.index()] || !IsBackward(trace_, node)) return modules_[node.index()];
        const auto found = forward.find(*trace_.seq_id(node));
        return found == forward.end() ? StringId::None() : found->second;
      });
    }
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launcher = launches.launcher(node);
      if (launcher && !modules_[node.index()]) modules_[node.index()] = modules_[launcher.index()];
    });
  }

 private:
  StringId OwnLabel(NodeId node) const {
    const bool is_label = has_modules_ ? IsModule(trace_, node) : IsUserLabel(trace_, node);
    return is_label ? trace_.name_id(node) : StringId::None();
  }

  // Gives each node `own(node)`, or else what its parent has. Parents may come after children.
  template <typename Own>
  void Descend(Own own) {
    std::vector<NodeId> stack;
    ForEachNode(trace_, [&](NodeId node) {
      if (!trace_.parent(node)) stack.push_back(node);
    });
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      const NodeId parent = trace_.parent(node);
      StringId& module = modules_[node.index()];
      module = own(node);
      if (!module && parent) module = modules_[parent.index()];
      for (const NodeId child : trace_.children(node)) stack.push_back(child);
    }
  }

  const Trace& trace_;
  std::vector<StringId>& modules_;
  bool has_modules_ = false;
};

}  // namespace

Modules::Modules(const Trace& trace, const Launches& launches)
    : trace_(&trace), modules_(trace.node_count()) {
  Finder(trace, modules_).Run(launches);
}

std::string_view Modules::name(NodeId node) const {
  const StringId module = id(node);
  return module ? trace_->text(module) : kNoModule;
}

}  // namespace etude
