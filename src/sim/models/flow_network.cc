#include "src/sim/models/flow_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/sim/network/fair_sharing.h"
#include "src/sim/network/network_graph.h"
#include "src/sim/network/switch_tree.h"

namespace etude {
namespace {

// Links with classes are counted by class.
std::vector<double> CapacitiesOf(const NetworkGraph& graph, const RankClasses& classes) {
  std::vector<double> capacities(graph.links().size());
  for (size_t i = 0; i < capacities.size(); ++i) {
    const size_t link = classes.class_of_link.empty() ? i : classes.class_of_link[i];
    capacities[link] = std::max(graph.links()[i].rate(), 1e-12);
  }
  return capacities;
}

std::vector<uint32_t> SizesOf(const std::vector<uint32_t>& classes) {
  std::vector<uint32_t> sizes(classes.size());
  for (const uint32_t one : classes) ++sizes[one];
  return sizes;
}

class FlowNetwork final : public SimNetworkModel {
 public:
  FlowNetwork(const SimInput& input, SimTimeline& timeline, TieWatch& ties)
      : input_(input),
        graph_(*input.machine.graph),
        by_load_(input.machine.routes == RouteChoice::kLeastLoaded),
        timeline_(timeline),
        ties_(ties),
        routes_(graph_),
        sharing_(CapacitiesOf(graph_, input.classes)),
        load_(graph_.links().size()),
        sent_(graph_.links().size()) {
    if (!input.by_class) return;
    ranks_ = SizesOf(input.classes.class_of);
    links_ = SizesOf(input.classes.class_of_link);
  }

  std::string_view name() const override { return "etude-1/flows"; }

  Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) override {
    if (message >= transfers_.size()) transfers_.resize(message + size_t{1});
    Transfer& transfer = transfers_[message];
    transfer = {.path = kNoIndex, .bytes = bytes};
    if (from == to) {
      timeline_.Plan(timeline_.now(), SimEventKind::kArrival, message);
      return {};
    }
    const SimIndex index = PathOf(from, to);
    const Path& path = paths_[index];
    if (bytes > 0) transfer.path = index;
    Count({.path = index, .bytes = bytes});
    timeline_.Plan(timeline_.now() + path.latency, SimEventKind::kArrival, message);
    return {.latency = path.latency,
            .transfer = WholeNanos(std::ceil(static_cast<double>(bytes) / path.rate))};
  }

  Result<Travel::Parts> SendBySwitches(SimIndex message, const SwitchTransfer& switched) override {
    ETUDE_ASSIGN_OR_RETURN(const SwitchTree* tree, TreeOf(switched.members));
    const std::vector<Flow> flows = FlowsOf(switched, *tree);
    if (message >= transfers_.size()) transfers_.resize(message + size_t{1});
    Transfer& transfer = transfers_[message];
    transfer = {};
    for (const Flow& flow : flows) {
      Count(flow);
      if (flow.bytes == 0) continue;
      if (transfer.path == kNoIndex) {
        transfer.path = flow.path;
        transfer.bytes = flow.bytes;
      } else {
        transfer.others.push_back(flow);
      }
    }
    transfer.left = 1 + transfer.others.size();
    const int64_t latency = LatencyOf(switched, *tree);
    timeline_.Plan(timeline_.now() + latency, SimEventKind::kArrival, message);
    return Travel::Parts{.latency = latency, .transfer = TimeAlone(flows)};
  }

  // The first arrival is that of the message's first byte.
  bool Arrive(const SimEvent& event) override {
    const SimIndex message = event.subject;
    Transfer& transfer = transfers_[message];
    if (transfer.path == kNoIndex || transfer.started) return true;
    if (sharing_.now() < static_cast<double>(timeline_.now())) Advance();
    sharing_.Start(transfer.path, static_cast<double>(transfer.bytes), message);
    for (const Flow& flow : transfer.others) {
      sharing_.Start(flow.path, static_cast<double>(flow.bytes), message);
    }
    transfer.started = true;
    // Flows that start at this time, as far as they are planned, are computed together.
    if (!looks_now_) {
      looks_now_ = true;
      timeline_.Plan(timeline_.now(), SimEventKind::kLinkFree, kNoIndex);
    }
    return false;
  }

  // Ends the flows that are due.
  void FreeLink(const SimEvent& /*event*/) override {
    const int64_t now = timeline_.now();
    if (planned_ <= now) planned_ = kNever;
    looks_now_ = false;
    Advance();
    const double next = sharing_.NextEnd();
    if (next == std::numeric_limits<double>::infinity()) return;
    const int64_t time = std::max(now, WholeNanos(std::ceil(next - RoundingOf(next))));
    if (time >= planned_) return;
    planned_ = time;
    timeline_.Plan(time, SimEventKind::kLinkFree, kNoIndex);
  }

  std::vector<SimLinkUse> Links() const override {
    std::vector<SimLinkUse> links;
    for (size_t i = 0; i < sent_.size(); ++i) {
      const Sent& sent = sent_[input_.by_class ? input_.classes.class_of_link[i] : i];
      if (sent.messages == 0) continue;
      const NetworkLink& link = graph_.links()[i];
      links.push_back({.from = link.from,
                       .to = link.to,
                       .dim = link.dim,
                       .messages = sent.messages,
                       .bytes = sent.bytes,
                       .busy = WholeNanos(static_cast<double>(sent.bytes) / link.rate()),
                       .bytes_per_ns = link.rate()});
    }
    return links;
  }

 private:
  using Order = FairSharing::Order;

  static constexpr int64_t kNever = INT64_MAX;

  struct Flow {
    SimIndex path = kNoIndex;
    int64_t bytes = 0;
  };
  struct Transfer {
    SimIndex path = kNoIndex;  // kNoIndex: no flow
    int64_t bytes = 0;
    bool started = false;      // the flow
    size_t left = 1;           // flows that have not ended
    std::vector<Flow> others;  // of a transfer by switches, all with bytes
  };
  struct Path {
    int64_t latency = 0;  // ns
    double rate = 0;      // bytes per ns, the smallest of its links
  };
  struct Sent {
    uint64_t messages = 0;
    int64_t bytes = 0;
  };
  struct LinksHash {
    size_t operator()(const std::vector<uint32_t>& links) const {
      uint64_t hash = links.size();
      for (const uint32_t link : links) {
        hash = (hash ^ link) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
      }
      return hash;
    }
  };

  // Returns the path of a message from one NPU to another that starts now.
  SimIndex PathOf(int64_t from, int64_t to) {
    if (!by_load_) {
      const uint64_t ends = static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(to);
      const auto [found, is_new] = path_of_ends_.try_emplace(ends);
      if (is_new) {
        scratch_.clear();
        routes_.Find(from, to, nullptr, scratch_);
        found->second = input_.by_class ? AddPathOfClass(from) : AddPath(Order::kInOrder);
      }
      return found->second;
    }
    scratch_.clear();
    routes_.Find(
        from, to, [&](uint32_t link) { return load_[link]; }, scratch_);
    return PathOver(scratch_, Order::kInOrder);
  }
  // Returns the path over some links: of messages, which are in order, or of data that switches
  // reduce or multicast.
  SimIndex PathOver(const std::vector<uint32_t>& links, Order order) {
    auto& paths = order == Order::kInOrder ? path_of_links_ : path_of_trees_;
    const auto [found, is_new] = paths.try_emplace(links);
    if (is_new) {
      scratch_ = links;
      found->second = AddPath(order);
    }
    return found->second;
  }
  // Counts the traffic of a flow.
  void Count(const Flow& flow) {
    const std::span<const uint32_t> weights = sharing_.WeightsOf(flow.path);
    for (size_t i = 0; i < weights.size(); ++i) {
      const uint32_t link = sharing_.LinksOf(flow.path)[i];
      if (flow.bytes > 0) ++load_[link];
      sent_[link].messages += weights[i];
      sent_[link].bytes += weights[i] * flow.bytes;
    }
  }
  void Uncount(SimIndex path) {
    for (const uint32_t link : sharing_.LinksOf(path)) --load_[link];
  }

  Result<const SwitchTree*> TreeOf(const std::vector<int64_t>& members) {
    const auto found = trees_.find(members);
    if (found != trees_.end()) return &found->second;
    ETUDE_ASSIGN_OR_RETURN(SwitchTree tree, FindSwitchTree(graph_, members));
    return &trees_.emplace(members, std::move(tree)).first->second;
  }
  // Returns the links of some ways, each link once.
  static std::vector<uint32_t> Union(std::span<const std::vector<uint32_t>> some,
                                     std::span<const std::vector<uint32_t>> more = {}) {
    std::vector<uint32_t> links;
    for (const auto& ways : {some, more}) {
      for (const std::vector<uint32_t>& way : ways) {
        links.insert(links.end(), way.begin(), way.end());
      }
    }
    std::ranges::sort(links);
    links.erase(std::ranges::unique(links).begin(), links.end());
    return links;
  }
  // Returns the flows of a transfer: one over all links of reduced or multicast data, and one for
  // each member with data of its own.
  std::vector<Flow> FlowsOf(const SwitchTransfer& switched, const SwitchTree& tree) {
    const auto members = static_cast<int64_t>(switched.members.size());
    const auto root = static_cast<size_t>(switched.root);
    const auto of_all = [&](std::span<const std::vector<uint32_t>> some,
                            std::span<const std::vector<uint32_t>> more, int64_t bytes) {
      return Flow{.path = PathOver(Union(some, more), Order::kAtOnce), .bytes = bytes};
    };
    const auto with_each = [&](Flow all, std::span<const std::vector<uint32_t>> ways,
                               int64_t bytes) {
      std::vector<Flow> flows = {all};
      for (const std::vector<uint32_t>& way : ways) {
        flows.push_back({.path = PathOver(way, Order::kAtOnce), .bytes = bytes});
      }
      return flows;
    };
    const int64_t bytes = switched.bytes;
    switch (switched.type) {
      case CollectiveType::kReduceScatter:
        return with_each(of_all(tree.up, {}, bytes), tree.down, bytes / members);
      case CollectiveType::kAllGather:
        return with_each(of_all(tree.down, {}, bytes * members), tree.up, bytes);
      case CollectiveType::kBroadcast: {
        std::vector<std::vector<uint32_t>> others = tree.down;
        others.erase(others.begin() + switched.root);
        return {of_all(std::span(tree.up).subspan(root, 1), others, bytes)};
      }
      case CollectiveType::kReduce:
        return {of_all(tree.up, std::span(tree.down).subspan(root, 1), bytes)};
      default: return {of_all(tree.up, tree.down, bytes)};
    }
  }
  // Returns the time in which the first byte is at all members: up to the root, and down.
  int64_t LatencyOf(const SwitchTransfer& switched, const SwitchTree& tree) const {
    const auto longest = [&](const std::vector<std::vector<uint32_t>>& ways, bool only_root) {
      double latency = 0;
      for (size_t i = 0; i < ways.size(); ++i) {
        if (only_root && static_cast<int64_t>(i) != switched.root) continue;
        latency = std::max(latency, CostOfPath(graph_, ways[i]).latency);
      }
      return latency;
    };
    return WholeNanos(longest(tree.up, switched.type == CollectiveType::kBroadcast) +
                      longest(tree.down, switched.type == CollectiveType::kReduce));
  }
  // Returns the time in which the busiest link transfers the bytes of all flows.
  int64_t TimeAlone(const std::vector<Flow>& flows) const {
    std::unordered_map<uint32_t, int64_t> bytes_of_link;
    for (const Flow& flow : flows) {
      for (const uint32_t link : sharing_.LinksOf(flow.path)) bytes_of_link[link] += flow.bytes;
    }
    double time = 0;
    for (const auto& [link, bytes] : bytes_of_link) {
      time = std::max(time, static_cast<double>(bytes) / graph_.links()[link].rate());
    }
    return WholeNanos(std::ceil(time));
  }
  SimIndex AddPath(Order order) {
    const PathCost cost = CostOfPath(graph_, scratch_);
    paths_.push_back({.latency = WholeNanos(cost.latency), .rate = cost.rate});
    return sharing_.AddPath(scratch_, {}, order);
  }
  // Adds the path from the first rank of a class, for the messages of all its ranks. Each link of a
  // class carries the same number of them.
  SimIndex AddPathOfClass(int64_t from) {
    const uint64_t ranks = ranks_[input_.ClassOf(from).index()];
    std::map<uint32_t, uint64_t> counts;  // of links on the path, by class
    for (const uint32_t link : scratch_) ++counts[input_.classes.class_of_link[link]];
    std::vector<uint32_t> links;
    std::vector<uint32_t> weights;
    for (const auto& [link, count] : counts) {
      links.push_back(link);
      weights.push_back(static_cast<uint32_t>(ranks * count / links_[link]));
    }
    const PathCost cost = CostOfPath(graph_, scratch_);
    paths_.push_back({.latency = WholeNanos(cost.latency), .rate = cost.rate});
    return sharing_.AddPath(links, weights, Order::kInOrder);
  }
  // Returns the rounding error of a time: one that is whole but for such an error is whole.
  static double RoundingOf(double time) { return std::max(1e-6, time * 1e-13); }

  void Advance() {
    ended_.clear();
    double time = std::max(static_cast<double>(timeline_.now()), sharing_.now());
    // An end that is due but for a rounding error is due: otherwise it would stay planned for now.
    const double next = sharing_.NextEnd();
    if (next > time && next - RoundingOf(next) <= time) time = next;
    sharing_.AdvanceTo(time, ended_);
    for (const SimIndex message : ended_) {
      Transfer& transfer = transfers_[message];
      if (--transfer.left > 0) continue;
      Uncount(transfer.path);
      for (const Flow& flow : transfer.others) Uncount(flow.path);
      ties_.BeginInNetwork();
      timeline_.Plan(timeline_.now(), SimEventKind::kArrival, message);
    }
  }

  const SimInput& input_;
  const NetworkGraph& graph_;
  const bool by_load_;
  SimTimeline& timeline_;
  TieWatch& ties_;
  std::vector<uint32_t> ranks_;  // by class of ranks; empty: each is its own
  std::vector<uint32_t> links_;  // by class of links
  NetworkRoutes routes_;
  FairSharing sharing_;
  std::vector<uint64_t> load_;       // messages on their way, by link
  std::vector<Sent> sent_;           // by link
  std::vector<Path> paths_;          // by number in sharing_
  std::vector<Transfer> transfers_;  // by message
  std::unordered_map<uint64_t, SimIndex> path_of_ends_;
  std::unordered_map<std::vector<uint32_t>, SimIndex, LinksHash> path_of_links_;  // of messages
  std::unordered_map<std::vector<uint32_t>, SimIndex, LinksHash> path_of_trees_;
  std::map<std::vector<int64_t>, SwitchTree> trees_;  // by members
  int64_t planned_ = kNever;                          // time of the next planned look for ends
  bool looks_now_ = false;                            // a look at the present time is planned
  std::vector<uint32_t> scratch_;
  std::vector<SimIndex> ended_;
};

}  // namespace

std::unique_ptr<SimNetworkModel> MakeFlowNetwork(const SimInput& input, SimTimeline& timeline,
                                                 TieWatch& ties) {
  return std::make_unique<FlowNetwork>(input, timeline, ties);
}

}  // namespace etude
