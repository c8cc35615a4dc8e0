#pragma once

#include <optional>
#include <span>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// The time of a recorded step in which no operator ran on any thread: Python, autograd's engine,
// waiting. What recording itself took is in it.
struct HostGaps {
  std::vector<Nanos> before;  // parallel to the operators: since what had ended last; none before
                              // one whose time is unknown
  Nanos after;                // from the last end to the end of the step
  Nanos waits;                // what was left out of these: waits for communications

  // For how much of each gap, and of the last one, the program waited and used no processor; empty:
  // for none of it.
  std::vector<Nanos> idle;

  Nanos total() const;
};

// Time that passed in gaps of a replay: with nothing, and waiting.
struct PassedGaps {
  Nanos busy;
  Nanos idle;
};

// What of its time a program waited in a step, and how often.
struct Waiting {
  Nanos time;
  int64_t times = 0;
};

// Takes the longest gaps, at most as many as the program waited, for those in which it did.
void MarkIdle(HostGaps& gaps, const Waiting& waiting);

// What FindHostGaps is to look at.
struct HostGapsOf {
  std::span<const NodeId> operators;  // those with gaps around them; none contains another
  // While one of these ran there was no gap either: what precedes it belongs to the operator that
  // comes next.
  std::span<const NodeId> others;
  TimeSet waits;  // for communications: no gaps
};

// Of the step from mark to mark; nullopt if there is no mark with a time, or more than a few of the
// nodes have none (FewAreUntimed).
std::optional<HostGaps> FindHostGaps(const Trace& trace, NodeId mark, const HostGapsOf& of);

}  // namespace etude
