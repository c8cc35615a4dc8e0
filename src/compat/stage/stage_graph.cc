#include "src/compat/stage/stage_graph.h"

#include <algorithm>
#include <unordered_map>

namespace etude::stage {
namespace {

// Builds the graphs of all stages; ids are consecutive across stages.
class GraphMaker {
 public:
  explicit GraphMaker(const TensorModel& model)
      : model_(model), stages_(static_cast<size_t>(model.stages)), place_(model.tensors.size()) {
    for (const Symbol dimension : model.dimensions) {
      if (model.values[dimension] > 1) dimensions_.push_back(dimension);
    }
  }

  Result<std::vector<StageGraph>> Run() {
    Distribute();
    for (Stage& stage : stages_) ETUDE_RETURN_IF_ERROR(AddNodes(stage));
    AddMessages();
    std::vector<StageGraph> graphs;
    for (Stage& stage : stages_) {
      Connect(stage);
      ETUDE_RETURN_IF_ERROR(CutIdle(stage));
      graphs.push_back(InFileOrder(stage));
    }
    return graphs;
  }

 private:
  // Nodes of a tensor. Collectives follow the computation, those of x1 first.
  struct NodesOfTensor {
    uint32_t compute = 0;
    uint32_t x1_count = 0;
    uint32_t x2_count = 0;
    std::vector<uint32_t> messages;  // a receive, or sends

    uint32_t first_x1() const { return x1_count == 0 ? compute : compute + 1; }
    uint32_t first_x2() const { return x2_count == 0 ? compute : compute + 1 + x1_count; }
  };

  struct Stage {
    StageGraph graph;
    std::vector<NodesOfTensor> nodes_of;  // by tensor of the stage
    std::vector<bool> cut;                // by node
  };

  // A message from a tensor to its shadow.
  struct Link {
    uint32_t tensor = 0;  // of the model
    size_t to = 0;
    uint32_t shadow = 0;
  };

  const Tensor& TensorOf(const StageTensor& tensor) const { return model_.tensors[tensor.tensor]; }
  const Pattern& PatternOf(const StageTensor& tensor) const {
    return model_.patterns[TensorOf(tensor).pattern];
  }

  void Distribute() {
    for (uint32_t i = 0; i < model_.tensors.size(); ++i) {
      auto& tensors = stages_[static_cast<size_t>(model_.tensors[i].stage)].graph.tensors;
      place_[i] = static_cast<uint32_t>(tensors.size());
      tensors.push_back({.tensor = i});
    }
    for (size_t s = 0; s < stages_.size(); ++s) {
      auto& tensors = stages_[s].graph.tensors;
      std::unordered_map<uint32_t, uint32_t> shadows;  // by tensor of the model
      const auto find = [&](uint32_t tensor) {
        if (tensor == kNoTensor) return kNoTensor;
        if (model_.tensors[tensor].stage == static_cast<int64_t>(s)) return place_[tensor];
        const auto next = static_cast<uint32_t>(tensors.size());
        const auto [shadow, is_new] = shadows.emplace(tensor, next);
        if (is_new) {
          tensors.push_back({.tensor = tensor, .shadow = true});
          links_.push_back({tensor, s, next});
        }
        return shadow->second;
      };
      const size_t own = tensors.size();
      for (size_t i = 0; i < own; ++i) {
        const uint32_t x1 = find(TensorOf(tensors[i]).x1);
        const uint32_t x2 = find(TensorOf(tensors[i]).x2);
        tensors[i].x1 = x1;
        tensors[i].x2 = x2;
      }
    }
  }

  uint32_t AddNode(Stage& stage, GraphNode node) {
    node.id = ++last_id_;
    stage.graph.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(stage.graph.nodes.size() - 1);
  }

  // Adds the collectives that convert input `x` to the layout `expected`, in sequence.
  Result<uint32_t> AddCollectives(Stage& stage, uint32_t tensor, GraphNode::Kind kind, uint32_t x,
                                  const Layout& expected) {
    if (x == kNoTensor) return 0;
    const Pattern& input = PatternOf(stage.graph.tensors[x]);
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Collective> collectives,
                           MatchCollectives(input.y, expected, dimensions_));
    std::vector<uint32_t> before;
    for (const Collective& collective : collectives) {
      before = {AddNode(stage, {.kind = kind,
                                .tensor = tensor,
                                .collective = collective,
                                .size = input.elements,
                                .deps = before})};
    }
    return static_cast<uint32_t>(collectives.size());
  }

  Status AddNodes(Stage& stage) {
    const auto count = static_cast<uint32_t>(stage.graph.tensors.size());
    for (uint32_t i = 0; i < count; ++i) {
      const StageTensor& tensor = stage.graph.tensors[i];
      NodesOfTensor nodes{.compute = AddNode(stage, {.tensor = i})};
      if (!tensor.shadow) {
        const Pattern& pattern = PatternOf(tensor);
        using enum GraphNode::Kind;
        ETUDE_ASSIGN_OR_RETURN(nodes.x1_count,
                               AddCollectives(stage, i, kCollectiveX1, tensor.x1, pattern.x1));
        ETUDE_ASSIGN_OR_RETURN(nodes.x2_count,
                               AddCollectives(stage, i, kCollectiveX2, tensor.x2, pattern.x2));
        auto& deps = stage.graph.nodes[nodes.compute].deps;
        if (nodes.x1_count != 0) deps.push_back(nodes.compute + nodes.x1_count);
        if (nodes.x2_count != 0) deps.push_back(nodes.compute + nodes.x1_count + nodes.x2_count);
      }
      stage.nodes_of.push_back(std::move(nodes));
    }
    return {};
  }

  void AddMessages() {
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      const auto from = static_cast<size_t>(model_.tensors[link.tensor].stage);
      GraphNode node{.size = model_.patterns[model_.tensors[link.tensor].pattern].elements,
                     .message = static_cast<int64_t>(i)};
      Stage& sender = stages_[from];
      node.kind = GraphNode::Kind::kSend;
      node.tensor = place_[link.tensor];
      node.peer_stage = static_cast<int64_t>(link.to);
      NodesOfTensor& sent = sender.nodes_of[node.tensor];
      node.deps = {sent.compute};
      sent.messages.push_back(AddNode(sender, node));
      Stage& receiver = stages_[link.to];
      node.kind = GraphNode::Kind::kRecv;
      node.tensor = link.shadow;
      node.peer_stage = static_cast<int64_t>(from);
      node.deps.clear();
      receiver.nodes_of[link.shadow].messages = {AddNode(receiver, node)};
    }
  }

  void Connect(Stage& stage) {
    const auto output = [&](uint32_t tensor) {
      const NodesOfTensor& nodes = stage.nodes_of[tensor];
      return stage.graph.tensors[tensor].shadow ? nodes.messages[0] : nodes.compute;
    };
    for (size_t i = 0; i < stage.graph.tensors.size(); ++i) {
      const StageTensor& tensor = stage.graph.tensors[i];
      const NodesOfTensor& nodes = stage.nodes_of[i];
      auto& all = stage.graph.nodes;
      if (tensor.x1 != kNoTensor) all[nodes.first_x1()].deps.push_back(output(tensor.x1));
      if (tensor.x2 != kNoTensor) all[nodes.first_x2()].deps.push_back(output(tensor.x2));
      if (tensor.shadow) continue;
      for (const uint32_t other : TensorOf(tensor).after) {
        all[nodes.compute].deps.push_back(output(place_[other]));
      }
    }
  }

  // Removes computations without work; their dependents inherit their dependencies. Works in rounds
  // that skip nodes depending on other idle ones, which gives STAGE's order of dependencies.
  Status CutIdle(Stage& stage) {
    auto& nodes = stage.graph.nodes;
    stage.cut.resize(nodes.size());
    std::vector<uint32_t> idle;
    for (size_t i = 0; i < stage.graph.tensors.size(); ++i) {
      const StageTensor& tensor = stage.graph.tensors[i];
      if (tensor.shadow || PatternOf(tensor).operations == 0) {
        idle.push_back(stage.nodes_of[i].compute);
      }
    }
    constexpr uint32_t kNotIdle = UINT32_MAX;
    std::vector<uint32_t> number(nodes.size(), kNotIdle);  // among the idle
    std::vector<std::vector<uint32_t>> waiting;            // by number
    std::vector<uint32_t> left;
    while (!idle.empty()) {
      waiting.assign(idle.size(), {});
      for (uint32_t i = 0; i < idle.size(); ++i) number[idle[i]] = i;
      for (uint32_t i = 0; i < nodes.size(); ++i) {
        if (stage.cut[i]) continue;
        for (const uint32_t dep : nodes[i].deps) {
          if (number[dep] != kNotIdle) waiting[number[dep]].push_back(i);
        }
      }
      left.clear();
      for (uint32_t i = 0; i < idle.size(); ++i) {
        const uint32_t node = idle[i];
        const auto& deps = nodes[node].deps;
        if (std::ranges::any_of(deps, [&](uint32_t dep) { return number[dep] != kNotIdle; })) {
          left.push_back(node);
          continue;
        }
        stage.cut[node] = true;
        for (const uint32_t child : waiting[i]) {
          auto& inherits = nodes[child].deps;
          inherits.erase(std::ranges::find(inherits, node));
          inherits.insert(inherits.end(), deps.begin(), deps.end());
        }
      }
      for (const uint32_t node : idle) number[node] = kNotIdle;
      if (left.size() == idle.size()) {
        return MakeError(ErrorCode::kInternal, "tensors that wait for each other");
      }
      std::swap(idle, left);
    }
    return {};
  }

  static StageGraph InFileOrder(Stage& stage) {
    auto& nodes = stage.graph.nodes;
    std::vector<uint32_t> order;
    for (const NodesOfTensor& of : stage.nodes_of) {
      if (!stage.cut[of.compute]) order.push_back(of.compute);
      for (uint32_t i = 1; i <= of.x1_count + of.x2_count; ++i) order.push_back(of.compute + i);
      order.insert(order.end(), of.messages.begin(), of.messages.end());
    }
    std::vector<uint32_t> place(nodes.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    StageGraph graph{.tensors = std::move(stage.graph.tensors)};
    for (const uint32_t node : order) {
      GraphNode moved = std::move(nodes[node]);
      std::vector<uint32_t> deps;
      for (const uint32_t dep : moved.deps) {
        if (std::ranges::find(deps, place[dep]) == deps.end()) deps.push_back(place[dep]);
      }
      moved.deps = std::move(deps);
      graph.nodes.push_back(std::move(moved));
    }
    return graph;
  }

  const TensorModel& model_;
  std::vector<Stage> stages_;
  std::vector<uint32_t> place_;     // position of each tensor of the model in its stage
  std::vector<Symbol> dimensions_;  // with more than one rank
  std::vector<Link> links_;
  uint64_t last_id_ = 0;
};

}  // namespace

Result<std::vector<StageGraph>> MakeStageGraphs(const TensorModel& model) {
  return GraphMaker(model).Run();
}

RankGrid::RankGrid(const TensorModel& model) : stages_(model.stages) {
  for (const Symbol dimension : model.dimensions) {
    const int64_t degree = model.values[dimension];
    axes_.push_back({.dimension = dimension, .degree = degree, .stride = ranks_of_stage_});
    ranks_of_stage_ *= degree;
  }
  int64_t groups = 0;
  for (Axis& axis : axes_) {
    axis.first = groups + 1;
    groups += ranks() / axis.degree;
  }
}

// Groups are numbered by the other coordinates: the stage varies slowest, the last dimension
// fastest.
int64_t RankGrid::GroupOn(int64_t rank, const Axis& axis) const {
  int64_t number = stage(rank);
  for (const Axis& other : axes_) {
    if (other.dimension == axis.dimension) continue;
    number = number * other.degree + Coordinate(rank, other);
  }
  return axis.first + number;
}

int64_t RankGrid::Group(int64_t rank, Symbol dimension) const {
  return GroupOn(rank, *std::ranges::find(axes_, dimension, &Axis::dimension));
}

std::map<int64_t, std::vector<int64_t>> RankGrid::Groups() const {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    for (const Axis& axis : axes_) groups[GroupOn(rank, axis)].push_back(rank);
  }
  return groups;
}

}  // namespace etude::stage
