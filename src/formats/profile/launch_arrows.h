#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/formats/profile/profile_processes.h"
#include "src/formats/profile/time_nesting.h"
#include "src/trace/trace_builder.h"

namespace etude {

// The arrows of profiles without correlations. Each leads from a host thread to the work that it
// launched. Work at the end of an arrow belongs to the host node at its begin. Both are found by
// time. Not thread-safe.
class LaunchArrows {
 public:
  struct Arrow {
    StringId id;
    LaneId lane;  // by process and thread
    Nanos at;
    bool begins = false;
  };

  void Add(const Arrow& arrow) { arrows_.push_back(arrow); }
  size_t size() const { return arrows_.size(); }

  // Adds the begins as nodes without a duration after the first `nodes` nodes, so that NestByTime
  // finds the nodes that contain them.
  void AddTimed(size_t nodes, std::vector<TimedNode>& timed) const;
  // Sets the parents of the device work among `events`. `begins_in`: the node in which each arrow
  // begins, or kNone.
  void SetParents(std::span<const NodeId> begins_in, std::span<const UncategorisedEvent> events,
                  TraceBuilder& builder) const;

 private:
  std::vector<Arrow> arrows_;
};

}  // namespace etude
