#pragma once

#include <optional>
#include <span>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Time of a recorded step in which no operator ran on any thread: Python, autograd's engine, waits.
// Includes the overhead of recording.
struct HostGaps {
  std::vector<Nanos> before;  // by operator: time since the last end before it; 0 for an operator
                              // without a time
  Nanos after;                // from the last end to the end of the step
  Nanos waits;                // excluded waits for communications

  // Waiting time without CPU use in each gap, and in the last one; empty: none.
  std::vector<Nanos> idle;

  Nanos total() const;
};

// Time spent in gaps of a replay: without work, and waiting.
struct PassedGaps {
  Nanos busy;
  Nanos idle;
};

// Waiting time of a program in a step, and number of waits.
struct Waiting {
  Nanos time;
  int64_t times = 0;
};

// Marks the longest gaps as waits, up to the number and total time of the program's waits.
void MarkIdle(HostGaps& gaps, const Waiting& waiting);

// Input of FindHostGaps.
struct HostGapsOf {
  std::span<const NodeId> operators;  // operators with gaps around them; none contains another
  // Other nodes whose time is not a gap: the time before one belongs to the gap of the next
  // operator.
  std::span<const NodeId> others;
  TimeSet waits;  // for communications: no gaps
};

// Finds the gaps of the step from mark to mark; nullopt if there is no mark with a time, or if more
// than a few of the nodes have none (FewAreUntimed).
std::optional<HostGaps> FindHostGaps(const Trace& trace, NodeId mark, const HostGapsOf& of);

}  // namespace etude
