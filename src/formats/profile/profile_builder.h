#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/container/intern_table.h"
#include "src/base/limits.h"
#include "src/base/units.h"
#include "src/formats/profile/launch_arrows.h"
#include "src/formats/profile/merged_processes.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/profile/profile_comms.h"
#include "src/formats/profile/profile_processes.h"
#include "src/formats/profile/profiler_event.h"
#include "src/formats/profile/time_nesting.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Makes the nodes of a trace from the events of a profile in any format: their kinds, lanes,
// parents, correlations and communications. A tokenizer passes one event after the other, then
// calls Finish. The TraceBuilder must outlive it. Not thread-safe.
//
// An event with a name and a start becomes a node in two steps. Between them the tokenizer cuts the
// texts of extras, which may fail. It is known only then which extras are needed.
//   const auto spot = profile.Locate(event);
//   …  // cut event.extras
//   profile.Add(event, spot, index);
class ProfileBuilder {
 public:
  ProfileBuilder(TraceBuilder& builder, const Limits& limits)
      : builder_(builder), max_arrows_(limits.nodes), comms_(builder), processes_(builder) {}

  // The place of an event in the trace.
  struct Spot {
    ProfileCategory category;  // its name is the event's
    Place place = Place::kUnknown;
    StringId name;
    Lane lane;
    LaneId lane_id;
  };

  // Returns whether the event belongs to a process that only sums up the others, and counts it as
  // skipped.
  bool SkipsSum(const ProfilerEvent& event);
  // Takes the duration of a complete event, or counts it as unknown. Must be called before Locate.
  void TakeDuration(ProfilerEvent& event);
  // Finds the place of the event. Facts that its lane does not contain become extras.
  Spot Locate(ProfilerEvent& event);
  // Adds a complete event. `index`: its number in the file.
  void Add(ProfilerEvent& event, const Spot& spot, uint64_t index);
  // Adds an action of an allocator, below the operator that requested it.
  void AddMemoryEvent(ProfilerEvent& event, const Spot& spot, uint64_t index);
  // Adds an event without a duration, which lasts until its end.
  void AddBegin(ProfilerEvent& event, const Spot& spot, uint64_t index);

  // Finds the begin for an end: the last open one on its thread. Returns false if there is none.
  // Facts that the lane does not contain become extras of the event.
  bool LocateEnd(ProfilerEvent& event);
  // Ends the event that LocateEnd found. Arguments of the end belong to its node too.
  void AddEnd(ProfilerEvent& event, Nanos end);

  // Adds one end of an arrow from the host to the work that it launched. Both ends have the same
  // `id`.
  void AddArrow(const ProfilerEvent& event, std::string_view id, bool begins);

  // Names the event's process or thread. Names may come after events.
  void NameProcess(const ProfilerEvent& event, std::string_view name);
  void LabelProcess(const ProfilerEvent& event, std::string_view label);
  void NameThread(const ProfilerEvent& event, std::string_view name);

  // Sets the facts that follow from all events together: unknown ends and times, parents,
  // communications.
  void Finish();

 private:
  // A begin that waits for its end.
  struct Open {
    NodeId node;
    NodeKind kind = NodeKind::kUnknown;  // by its category
    Place place = Place::kUnknown;
    Lane lane;
    Nanos start;
    size_t timed = 0;                  // its place in timed_
    std::unique_ptr<CommFacts> facts;  // null if it has none
  };
  struct Added {
    NodeId node;
    size_t timed = 0;  // its place in timed_, or kNotTimed
  };
  static constexpr size_t kNotTimed = SIZE_MAX;

  // `seen`: the time until which it contains other nodes that begin on its thread.
  Added AddNode(ProfilerEvent& event, const Spot& spot, uint64_t index,
                std::optional<Nanos> duration, std::optional<Nanos> seen);
  Lane ThreadOf(const ProfilerEvent& event);
  Lane LaneOf(const ProfilerEvent& event, Place place);
  std::vector<Open>& OpenOnThread(const ProfilerEvent& event);
  void AddUncategorised(const ProfilerEvent& event, NodeId node);
  void CompleteComm(const Open& open, ProfilerEvent& event);
  std::unique_ptr<CommFacts> FactsToComplete(const ProfilerEvent& event);
  void InternExtras(const ProfilerEvent& event);
  void AddExtras(NodeId node);

  void ClearImpossibleTimes();
  void SetParents();
  void SetAutogradNode(NodeId node, NodeId parent);

  TraceBuilder& builder_;
  uint64_t max_arrows_;
  ProfileComms comms_;
  ProfileProcesses processes_;
  MergedProcesses merged_;
  LaunchArrows arrows_;
  std::vector<Extra> extras_;     // of the event
  std::string key_;               // of an extra
  std::vector<TimedNode> timed_;  // host nodes
  InternTable<Lane, struct ThreadTag> threads_;
  std::vector<std::vector<Open>> open_;  // by thread
  std::vector<Open>* ending_ = nullptr;  // the thread of the end that LocateEnd found
};

}  // namespace etude
