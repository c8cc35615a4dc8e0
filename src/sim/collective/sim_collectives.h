#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/sim/collective/collective_stream.h"
#include "src/sim/engine/sim_messages.h"
#include "src/sim/engine/sim_pool.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/models/sim_endpoint_model.h"
#include "src/sim/plan/plan_runs.h"

namespace etude {

class NodeListener {
 public:
  virtual ~NodeListener() = default;
  virtual void Complete(RankClassId rank_class, SimIndex node) = 0;
  virtual void Fail(RankClassId rank_class, SimIndex node, std::string_view what) = 0;
};

// Simulates collectives of all ranks: chunks are streams that pass through the queues of their
// phases.
class SimCollectives final : private StreamActions, private PlanActions {
 public:
  SimCollectives(const SimInput& input, const SimCollectiveModel& model, SimEndpointModel& endpoint,
                 SimTimeline& timeline, SimMessages& messages, TieWatch& ties,
                 NodeListener& listener);

  // Begins the collective of a node. The listener is notified of its completion.
  void Begin(RankClassId rank_class, SimIndex index, const SimNode& node);

  // Event handlers.
  void MessageCame(SimIndex stream, const SimChain* chain);
  void Handled(const LocalEvent& event);
  void Reduced(const LocalEvent& event);
  void Streamless(const LocalEvent& event);
  void ProgramNodeDone(const LocalEvent& event);
  void PlanMessageDone(SimIndex action, const SimChain& chain) { plans_.Done(action, chain); }
  void PlanWorkDone(const LocalEvent& event);
  void SwitchesDone(SimIndex members, const SimChain& chain);
  void ProgramMessageDone(SimIndex stream, SimIndex node, const SimChain* chain);

  // Returns the collective ends by class. Call once only.
  std::vector<std::vector<SimCollectiveEnd>> TakeEnds();
  // Returns the current nodes of collective programs, by class.
  std::vector<std::vector<SimProgramWait>> ProgramWaits() const;

 private:
  struct DataSet {
    RankClassId rank_class;
    SimIndex node = 0;
    int64_t left = 0;   // unfinished streams
    int64_t begin = 0;  // ns
  };
  struct Waiting {
    int64_t priority = 0;
    uint64_t order = 0;
    SimIndex stream = 0;

    friend bool operator<(const Waiting& a, const Waiting& b) {
      return a.priority != b.priority ? a.priority < b.priority : a.order > b.order;
    }
  };
  struct Queue {
    std::priority_queue<Waiting> waiting;
    int64_t running = 0;
  };
  struct State {
    State(size_t groups, size_t dims, size_t slots, size_t queues_of_dim)
        : next_of_group(groups),
          turns(slots, QueueTurns(dims)),
          queues(slots * dims * queues_of_dim) {}

    int64_t next_stream = 0;
    std::vector<int64_t> next_of_group;  // by group number of the rank
    int64_t next_priority = 0;
    uint64_t next_order = 0;
    std::vector<size_t> group_slots;  // SlotOf
    std::vector<QueueTurns> turns;    // by slot of a group
    std::vector<Queue> queues;
    std::vector<SimCollectiveEnd> ends;
  };
  // The phase whose members join: tag, dimension, first rank, type, bytes.
  using Joint = std::tuple<int64_t, size_t, int64_t, CollectiveType, int64_t>;
  // A stream that left a queue; another stream may have waited for its place.
  struct Leaving {
    SimIndex data_set = 0;
    SimChain chain;
  };

  // StreamActions.
  void Send(const CollectiveStream& stream, int64_t target, int64_t bytes,
            int64_t ordinal) override;
  void Receive(const CollectiveStream& stream, int64_t source, int64_t bytes,
               int64_t ordinal) override;
  void Handle(const CollectiveStream& stream, const Handling& handling) override;
  void JoinMembers(const CollectiveStream& stream) override;
  void EndPhase(CollectiveStream& stream) override { NextPhase(stream); }

  // PlanActions.
  void SendOf(int64_t from, int64_t to, int64_t bytes, SimIndex action,
              const SimChain& chain) override;
  Status SendBySwitchesOf(const SwitchTransfer& transfer, int64_t from, SimIndex action,
                          const SimChain& chain) override;
  void WorkOf(int64_t rank, int64_t bytes, int64_t accesses, SimIndex action,
              const SimChain& chain) override;
  void EndPlan(SimIndex stream, const SimChain& chain) override;
  void FailPlan(SimIndex stream, const Error& error) override;

  std::optional<CollectiveCall> CallOf(RankClassId rank_class, SimIndex index, const SimNode& node);
  int64_t PriorityOf(State& state, const SimNode& node) const;
  int64_t NextStream(RankClassId rank_class, const SimNode& node, bool of_all);
  CollectiveStream& NewStream();
  void NextPhase(CollectiveStream& stream);
  // `leaving`: stream that made room; nullptr: none.
  void StartStreams(RankClassId rank_class, SimIndex queue, const Leaving* leaving);
  SimChain ChainOfStart(const CollectiveStream& stream, const Leaving* leaving) const;
  void Start(CollectiveStream& stream);
  void Finish(SimIndex stream);
  void StartProgram(CollectiveStream& stream);
  // Returns nullptr after a failure.
  const PlanProgram* PlanProgramOf(const CollectivePlan& plan, int64_t bytes,
                                   RankClassId rank_class, SimIndex node);
  void StartPlan(CollectiveStream& stream);
  void CompleteProgramNode(SimIndex stream, SimIndex node);
  // Returns the chain to continue for an event that notified the stream.
  SimChain ChainOf(const CollectiveStream& stream, const SimChain* told) const;
  void IssueProgramNode(CollectiveStream& stream, SimIndex index);

  const SimInput& input_;
  const SystemModel& system_;
  const SimCollectiveModel& model_;
  SimEndpointModel& endpoint_;
  SimTimeline& timeline_;
  SimMessages& messages_;
  TieWatch& ties_;
  NodeListener& listener_;
  const int64_t most_running_;  // maximum of running streams per queue
  std::vector<State> states_;   // by class
  SimPool<DataSet> data_sets_;
  std::deque<CollectiveStream> streams_;
  std::vector<SimIndex> free_streams_;
  std::map<Joint, std::vector<SimIndex>> joining_;  // streams
  SimPool<std::vector<SimIndex>> joined_;           // streams whose data switches transfer
  PlanRuns plans_;
  std::map<std::pair<const CollectivePlan*, int64_t>, PlanProgram> plan_programs_;  // by bytes
  SimChains chains_;  // for local events
  SimChain now_;      // of the event being handled
};

}  // namespace etude
