#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "src/sim/collective/sim_collectives.h"
#include "src/sim/engine/shared_cores.h"
#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"

namespace etude {

// Message about a communication without a recorded time.
inline constexpr std::string_view kNoRecordedTime =
    "found a communication without a recorded time, expected the times of all its ranks";

// Simulates collectives of known times: each begins when the last rank calls it, and ends on all
// ranks at once, or on each after its recorded time. Requires SimMachine::times, and ranks that are
// simulated individually.
class TimedCollectives {
 public:
  TimedCollectives(const SimInput& input, SharedCores& cores, SimTimeline& timeline,
                   NodeListener& listener);

  // Begins the collective of a node. The listener is notified of its completion.
  void Begin(RankClassId rank_class, SimIndex index, const SimNode& node);
  // Handles the end of a collective.
  void End(SimIndex collective);

  // Returns the collective ends by rank. Call once only.
  std::vector<std::vector<SimCollectiveEnd>> TakeEnds();

 private:
  struct Call {
    RankClassId rank_class;
    SimIndex node = 0;
  };
  struct Collective {
    CollectiveType type = CollectiveType::kUnknown;
    int64_t bytes = 0;
    int64_t nanos = 0;  // alone
    int64_t begin = 0;
    std::vector<Call> calls;  // the last one is the last rank's
  };

  void EndAsRecorded(SimIndex collective);
  const std::vector<int64_t>* MembersOf(RankClassId rank_class, SimIndex index,
                                        const SimNode& node);

  const SimInput& input_;
  SharedCores& cores_;
  SimTimeline& timeline_;
  NodeListener& listener_;
  std::vector<int64_t> all_;                                  // ranks
  std::vector<std::map<int64_t, int64_t>> next_;              // by rank: by group, next number
  std::map<std::pair<int64_t, int64_t>, SimIndex> meetings_;  // by group and number
  std::vector<Collective> collectives_;
  std::vector<std::vector<SimCollectiveEnd>> ends_;  // by rank
};

}  // namespace etude
