#include "src/transform/astra_sim/astra_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>

#include "src/base/container/csr.h"

namespace etude {
namespace {

using What = RunnablePlan::What;

class Scheduler {
 public:
  Scheduler(const std::vector<RunnableRank>& ranks, std::vector<std::vector<RunnablePlan>>& plans)
      : ranks_(ranks), plans_(plans) {}

  AstraOrder Run() {
    order_.slots.resize(ranks_.size());
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) Prepare(rank);
    for (const At at : first_) Arrive(at);
    while (true) {
      while (!free_.empty()) {
        const At at = free_.back();
        free_.pop_back();
        Finish(at);
      }
      if (!ready_.empty()) {
        const Match first = ready_.top();
        ready_.pop();
        Start(std::get<1>(first));
      } else if (!Cut()) {
        return std::move(order_);
      }
    }
  }

 private:
  struct At {
    uint32_t rank = 0;
    uint32_t node = 0;
  };
  // A communication, by the position on the rank where it comes last, and its number.
  using Match = std::tuple<uint32_t, uint32_t>;
  struct Sides {
    uint32_t place = 0;
    std::vector<At> all;
    std::vector<At> here;  // ready
    bool queued = false;
    bool done = false;
  };

  const RunnableNode& NodeOf(At at) const { return ranks_[at.rank].nodes[at.node]; }
  RunnablePlan& PlanOf(At at) { return plans_[at.rank][at.node]; }

  void Prepare(uint32_t rank) {
    const RunnableRank& trace = ranks_[rank];
    std::vector<uint32_t> waits;
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    uint32_t place = 0;
    match_of_.emplace_back(trace.nodes.size(), RunnablePlan::kNone);
    for (uint32_t i = 0; i < trace.nodes.size(); ++i) {
      const auto deps = trace.DepsOf(i);
      waits.push_back(static_cast<uint32_t>(deps.size()));
      for (const uint32_t dep : deps) edges.emplace_back(dep, i);
      const At at{rank, i};
      if (IsCommunication(trace.nodes[i].kind) && PlanOf(at).what != What::kLeftOut)
        AddSide(at, place++);
      if (deps.empty()) first_.push_back(at);
    }
    waits_.push_back(std::move(waits));
    dependents_.push_back(Csr<uint32_t>::Build(
        trace.nodes.size(), edges, [](const auto& edge) { return edge.first; },
        [](const auto& edge) { return edge.second; }));
  }

  void AddSide(At at, uint32_t place) {
    const uint32_t match = PlanOf(at).what == What::kRuns ? PlanOf(at).match : RunnablePlan::kNone;
    uint32_t number = static_cast<uint32_t>(matches_.size());
    if (match != RunnablePlan::kNone) {
      if (by_match_.size() <= match) by_match_.resize(match + 1, RunnablePlan::kNone);
      if (by_match_[match] == RunnablePlan::kNone) by_match_[match] = number;
      number = by_match_[match];
    }
    if (number == matches_.size()) matches_.emplace_back();
    match_of_[at.rank][at.node] = number;
    matches_[number].all.push_back(at);
    matches_[number].place = std::max(matches_[number].place, place);
  }

  // Called when all predecessors of `at` on its own rank are done.
  void Arrive(At at) {
    const uint32_t number = match_of_[at.rank][at.node];
    if (number == RunnablePlan::kNone) {
      free_.push_back(at);
      return;
    }
    Sides& sides = matches_[number];
    if (sides.done) {
      // A receive with an available message, or a side of a removed communication.
      TakeSlot(at);
      free_.push_back(at);
      return;
    }
    sides.here.push_back(at);
    // A message requires only its sender.
    if (sides.here.size() == sides.all.size() || NodeOf(at).kind == NodeKind::kSend) {
      waiting_.erase({sides.place, number});
      if (!sides.queued) ready_.emplace(sides.place, number);
      sides.queued = true;
    } else {
      waiting_.emplace(sides.place, number);
    }
  }

  void Start(uint32_t number) {
    Sides& sides = matches_[number];
    sides.done = true;
    for (const At at : sides.here) {
      TakeSlot(at);
      free_.push_back(at);
    }
  }

  void TakeSlot(At at) {
    if (NodeOf(at).kind == NodeKind::kRecv || PlanOf(at).what == What::kLeftOut) return;
    order_.slots[at.rank].push_back(at.node);
  }

  void Finish(At at) {
    for (const uint32_t next : dependents_[at.rank][at.node]) {
      if (--waits_[at.rank][next] == 0) Arrive({at.rank, next});
    }
  }

  // On a deadlock: removes the first waiting communication. Returns false if none waits.
  bool Cut() {
    if (waiting_.empty()) return false;
    const uint32_t number = std::get<1>(*waiting_.begin());
    waiting_.erase(waiting_.begin());
    const At at = matches_[number].here.front();
    if (order_.first_cut.empty()) {
      order_.first_cut =
          fmt::format("rank {} would deadlock in '{}', waiting for a rank that waits for it",
                      *ranks_[at.rank].rank, ranks_[at.rank].names[NodeOf(at).name]);
    }
    for (const At side : matches_[number].all) {
      if (NodeOf(side).kind == NodeKind::kCollective) {
        PlanOf(side).Replay(RunnableNote::kCircular);
      } else {
        PlanOf(side).LeaveOut(RunnableNote::kCircular);
      }
    }
    Start(number);
    return true;
  }

  const std::vector<RunnableRank>& ranks_;
  std::vector<std::vector<RunnablePlan>>& plans_;
  AstraOrder order_;
  std::vector<Sides> matches_;
  std::vector<uint32_t> by_match_;               // RunnablePlan::match -> matches_
  std::vector<std::vector<uint32_t>> match_of_;  // by rank and node; kNone: no communication
  std::vector<std::vector<uint32_t>> waits_;
  std::vector<Csr<uint32_t>> dependents_;
  std::vector<At> first_;
  std::vector<At> free_;  // ready to be processed
  std::priority_queue<Match, std::vector<Match>, std::greater<>> ready_;
  std::set<Match> waiting_;  // some side is ready
};

}  // namespace

AstraOrder OrderCommunication(const std::vector<RunnableRank>& ranks,
                              std::vector<std::vector<RunnablePlan>>& plans) {
  return Scheduler(ranks, plans).Run();
}

}  // namespace etude
