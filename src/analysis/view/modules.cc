#include "src/analysis/view/modules.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <vector>

#include "src/formats/profile/profile_categories.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/words/module_name.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"
#include "src/trace/words/stated_facts.h"

namespace etude {
namespace {

bool IsModule(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && IsModuleLabel(trace.name(node));
}

// Labels of the profiler's other categories (Python frames, overhead) keep their category.
bool HasCategory(const Trace& trace, NodeId node) {
  return StatedText(trace, node, kCategoryExtraKey).has_value();
}

bool IsUserLabel(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kLabel && trace.place(node) == Place::kHost &&
         trace.scope(node).value_or(kUserScope) == kUserScope && !IsStepMark(trace.name(node)) &&
         !IsCommLabel(trace.name(node)) && !HasCategory(trace, node);
}

// Backward work records the thread of its forward operator.
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
      FindMakers();
      Descend([&](NodeId node) {
        if (modules_[node.index()] || !IsBackward(trace_, node)) return modules_[node.index()];
        return ModuleOfMaker(node);
      });
    }
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launcher = launches.launcher(node);
      if (launcher && !modules_[node.index()]) modules_[node.index()] = modules_[launcher.index()];
    });
  }

 private:
  // Forward operator that may have created the node of autograd's graph with its sequence number.
  struct Maker {
    StringId process;
    int64_t number = 0;
    std::optional<uint64_t> tid;
    Nanos start;
    uint64_t id = 0;
    StringId module;

    auto Key() const { return std::tuple(process, number, tid); }
  };

  StringId ProcessOf(NodeId node) const {
    const LaneId lane = trace_.lane_id(node);
    return lane ? trace_.lane(lane).process : StringId::None();
  }

  void FindMakers() {
    ForEachNode(trace_, [&](NodeId node) {
      if (!IsForward(trace_, node) || trace_.place(node) == Place::kDevice) return;
      makers_.push_back({.process = ProcessOf(node),
                         .number = *trace_.seq_id(node),
                         .tid = trace_.tid(node),
                         .start = trace_.start(node).value_or(Nanos{}),
                         .id = trace_.source_id(node),
                         .module = modules_[node.index()]});
    });
    std::ranges::sort(makers_, {}, [](const Maker& maker) {
      return std::tuple_cat(maker.Key(), std::tuple(maker.start, maker.id));
    });
  }

  // Returns the module of a backward operator's forward operator, on the thread that it names if
  // threads have such numbers (Kineto's have none), else in its process. A thread's sequence number
  // advances when an operator creates a node: among operators with one number, the last one to
  // begin created it, and the earlier ones created none.
  StringId ModuleOfMaker(NodeId backward) const {
    const auto last_of = [&](auto key, auto key_of) {
      const auto found = std::ranges::upper_bound(makers_, key, {}, key_of);
      const bool is_there = found != makers_.begin() && key_of(*std::prev(found)) == key;
      return is_there ? &*std::prev(found) : nullptr;
    };
    const StringId process = ProcessOf(backward);
    const int64_t number = *trace_.seq_id(backward);
    const Maker* maker = last_of(std::tuple(process, number, trace_.fw_tid(backward)),
                                 [](const Maker& one) { return one.Key(); });
    if (maker == nullptr) {
      maker = last_of(std::tuple(process, number),
                      [](const Maker& one) { return std::tuple(one.process, one.number); });
    }
    return maker == nullptr ? StringId::None() : maker->module;
  }

  StringId OwnLabel(NodeId node) const {
    const bool is_label = has_modules_ ? IsModule(trace_, node) : IsUserLabel(trace_, node);
    return is_label ? trace_.name_id(node) : StringId::None();
  }

  // Assigns each node `own(node)`, or else the value of its parent. Parents may come after
  // children.
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
  std::vector<Maker> makers_;  // in order of key, start and id
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
