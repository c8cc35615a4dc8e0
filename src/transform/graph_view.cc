#include "src/transform/graph_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/text/digit_runs.h"
#include "src/run/calls/launch.h"
#include "src/run/waits/host_times.h"

namespace etude {
namespace {

class Viewer {
 public:
  Viewer(const Trace& trace, size_t most)
      : trace_(trace), most_(most), launchers_(FindLaunchers(trace)) {}

  GraphView Run() {
    if (trace_.node_count() <= most_) {
      box_of_.resize(trace_.node_count());
      for (uint32_t i = 0; i < box_of_.size(); ++i) box_of_[i] = i;
      boxes_ = box_of_.size();
    } else {
      FindNesting();
      MakeSmall();
    }
    DrawBoxes();
    DrawEdges();
    view_.dangling = trace_.dangling().size();
    return std::move(view_);
  }

 private:
  static constexpr uint32_t kLeastDepth = 1;
  static constexpr uint32_t kMostDepth = 64;  // max depth tried

  NodeId CallerOf(NodeId node) const {
    return trace_.parent(node) ? trace_.parent(node) : launchers_[node.index()];
  }

  // Finds the callers and launchers above each node, callers first, and its depth.
  void FindNesting() {
    above_.resize(trace_.node_count());
    depth_.assign(trace_.node_count(), 0);
    std::vector<bool> done(trace_.node_count());
    std::vector<bool> on_path(trace_.node_count());
    std::vector<NodeId> path;
    ForEachNode(trace_, [&](NodeId first) {
      path.clear();
      NodeId node = first;
      while (node && !done[node.index()] && !on_path[node.index()]) {
        on_path[node.index()] = true;
        path.push_back(node);
        node = CallerOf(node);
      }
      while (!path.empty()) {
        const NodeId inner = path.back();
        path.pop_back();
        // A launcher below its own device work is unfinished: it is not above it.
        const NodeId outer = CallerOf(inner);
        if (outer && done[outer.index()]) {
          above_[inner.index()] = outer;
          depth_[inner.index()] = depth_[outer.index()] + 1;
        }
        done[inner.index()] = true;
        order_.push_back(inner);
      }
    });
  }

  // Assigns nodes to boxes, merging nodes deeper than `depth` into their ancestors.
  void GroupByDepth(uint32_t depth) {
    box_of_.assign(trace_.node_count(), 0);
    uint32_t count = 0;
    for (const NodeId node : order_) {
      const size_t i = node.index();
      box_of_[i] = depth_[i] <= depth ? count++ : box_of_[above_[i].index()];
    }
    boxes_ = count;
  }

  // Like GroupByDepth, but merges nodes of one name below one box. Returns false if there are too
  // many boxes.
  bool GroupByPath(uint32_t depth) {
    box_of_.assign(trace_.node_count(), 0);
    std::unordered_map<uint64_t, uint32_t> boxes;  // by parent box and name
    for (const NodeId node : order_) {
      const size_t i = node.index();
      if (depth_[i] > depth) {
        box_of_[i] = box_of_[above_[i].index()];
        continue;
      }
      const uint32_t outer = above_[i] ? box_of_[above_[i].index()] + 1 : 0;
      const uint64_t key = uint64_t{outer} << 32 | trace_.name_id(node).value();
      box_of_[i] = boxes.emplace(key, static_cast<uint32_t>(boxes.size())).first->second;
      if (boxes.size() > most_) return false;
    }
    boxes_ = boxes.size();
    return true;
  }

  void GroupByName() {
    std::vector<uint32_t> of_name(trace_.strings().size() + 1, UINT32_MAX);
    std::unordered_map<std::string, uint32_t> boxes;
    box_of_.assign(trace_.node_count(), 0);
    ForEachNode(trace_, [&](NodeId node) {
      const StringId name = trace_.name_id(node);
      uint32_t& box = of_name[name ? name.index() : of_name.size() - 1];
      if (box == UINT32_MAX) {
        const auto next = static_cast<uint32_t>(boxes.size());
        box = boxes.emplace(WithoutNumbers(trace_.text(name), "#"), next).first->second;
      }
      box_of_[node.index()] = box;
    });
    boxes_ = boxes.size();
  }

  void GroupByKind() {
    std::map<std::pair<NodeKind, Place>, uint32_t> boxes;
    box_of_.assign(trace_.node_count(), 0);
    ForEachNode(trace_, [&](NodeId node) {
      const std::pair key(trace_.kind(node), trace_.place(node));
      box_of_[node.index()] = boxes.emplace(key, static_cast<uint32_t>(boxes.size())).first->second;
    });
    boxes_ = boxes.size();
  }

  void MakeSmall() {
    std::vector<uint64_t> at_depth;
    for (const uint32_t depth : depth_) {
      if (depth >= at_depth.size()) at_depth.resize(depth + 1);
      ++at_depth[depth];
    }
    uint32_t fitting = 0;  // the greatest depth with few enough boxes
    for (uint64_t sum = 0; fitting < at_depth.size(); ++fitting) {
      sum += at_depth[fitting];
      if (sum > most_) break;
    }
    // Roots alone (processes and threads) show too little. The way that shows more is the milder
    // one.
    uint64_t fitting_boxes = 0;
    for (uint32_t i = 0; i < fitting; ++i) fitting_boxes += at_depth[i];
    const auto deepest = static_cast<uint32_t>(std::min<size_t>(at_depth.size(), kMostDepth));
    uint32_t depth = deepest;
    while (depth >= kLeastDepth && !GroupByPath(depth)) --depth;
    const bool paths_fit = depth >= kLeastDepth;
    if (fitting > kLeastDepth && (!paths_fit || fitting_boxes >= boxes_)) {
      view_.collapse = Collapse::kDepth;
      view_.depth = fitting - 1;
      return GroupByDepth(view_.depth);
    }
    if (paths_fit) {
      view_.collapse = Collapse::kPath;
      view_.depth = depth;
      return;
    }
    GroupByName();
    view_.collapse = Collapse::kName;
    if (boxes_ <= most_) return;
    GroupByKind();
    view_.collapse = Collapse::kKind;
  }

  std::string LabelOf(NodeId node) const {
    switch (view_.collapse) {
      case Collapse::kNone:
      case Collapse::kDepth:
      case Collapse::kPath: return std::string(trace_.name(node));
      case Collapse::kName: return WithoutNumbers(trace_.name(node), "#");
      case Collapse::kKind:
        return std::string(Name(trace_.kind(node))) + ", " + std::string(Name(trace_.place(node)));
    }
    return {};
  }

  // Returns true if no ancestor shares the node's box. The first such node names the box.
  bool IsTop(NodeId node) const {
    if (above_.empty() || view_.collapse == Collapse::kName || view_.collapse == Collapse::kKind) {
      return true;
    }
    const NodeId above = above_[node.index()];
    return !above || box_of_[above.index()] != box_of_[node.index()];
  }

  void DrawBoxes() {
    view_.graph.boxes.resize(boxes_);
    std::vector<bool> named(boxes_);
    std::vector<uint64_t> counts(boxes_);
    ForEachNode(trace_, [&](NodeId node) {
      const uint32_t number = box_of_[node.index()];
      DrawnGraph::Box& box = view_.graph.boxes[number];
      if (IsTop(node)) {
        if (!named[number]) {
          named[number] = true;
          box.label = LabelOf(node);
          box.kind = trace_.kind(node);
          box.place = trace_.place(node);
          box.id = trace_.source_id(node);
        } else if (box.kind != trace_.kind(node)) {
          box.kind = NodeKind::kUnknown;
        }
      }
      const auto time = StatedOwnTime(trace_, node);
      if (time) box.time = box.time.value_or(Nanos{}) + *time;
      ++counts[number];
    });
    for (size_t i = 0; i < boxes_; ++i) {
      view_.graph.boxes[i].nodes = counts[i];
      if (counts[i] > 1) view_.graph.boxes[i].id.reset();
    }
  }

  void DrawEdges() {
    using Key = std::tuple<uint32_t, uint32_t, DrawnGraph::EdgeKind>;
    std::vector<Key> keys;
    const auto add = [&](NodeId from, NodeId to, DrawnGraph::EdgeKind kind) {
      const uint32_t a = box_of_[from.index()];
      const uint32_t b = box_of_[to.index()];
      if (a == b) {
        ++view_.inside;
      } else {
        keys.emplace_back(a, b, kind);
      }
    };
    ForEachNode(trace_, [&](NodeId node) {
      if (const NodeId caller = CallerOf(node)) add(caller, node, DrawnGraph::EdgeKind::kCall);
      const auto deps = trace_.deps(node);
      const auto kinds = trace_.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) {
        switch (kinds[i]) {
          case DepKind::kControl: add(deps[i], node, DrawnGraph::EdgeKind::kControl); break;
          case DepKind::kData: add(deps[i], node, DrawnGraph::EdgeKind::kData); break;
          case DepKind::kSync: add(deps[i], node, DrawnGraph::EdgeKind::kSync); break;
        }
      }
    });
    std::ranges::sort(keys);
    for (size_t i = 0; i < keys.size();) {
      size_t end = i;
      while (end < keys.size() && keys[end] == keys[i]) ++end;
      const auto [from, to, kind] = keys[i];
      view_.graph.edges.push_back({.from = from, .to = to, .kind = kind, .count = end - i});
      i = end;
    }
  }

  const Trace& trace_;
  const size_t most_;
  const std::vector<NodeId> launchers_;
  GraphView view_;
  std::vector<NodeId> above_;
  std::vector<uint32_t> depth_;
  std::vector<NodeId> order_;     // each after its ancestors
  std::vector<uint32_t> box_of_;  // by node
  size_t boxes_ = 0;
};

}  // namespace

std::string_view Name(Collapse collapse) {
  switch (collapse) {
    case Collapse::kNone: return "none";
    case Collapse::kDepth: return "depth";
    case Collapse::kPath: return "path";
    case Collapse::kName: return "name";
    case Collapse::kKind: return "kind";
  }
  return "none";
}

GraphView ViewGraph(const Trace& trace, size_t most_boxes) {
  return Viewer(trace, most_boxes).Run();
}

}  // namespace etude
