#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/run/calls/comm_log.h"
#include "src/trace/job/job.h"
#include "src/trace/trace.h"

namespace etude {

// A class and the event of each of its communications.
struct ClassCalls {
  const Trace* program = nullptr;
  const std::vector<CommCall>* calls = nullptr;  // of its log
  std::span<const size_t> event_of;              // by call
};

// Call of a class, by indices.
struct ClassCall {
  size_t rank_class = 0;
  size_t call = 0;
};

// Sorts the events into a possible order: after their nodes' dependencies, and after earlier
// collectives of their group. Sets when messages are received. Returns calls that wait for each
// other if there is no such order.
std::vector<ClassCall> OrderEvents(std::span<const ClassCalls> classes,
                                   std::vector<CommEvent>& events);

}  // namespace etude
