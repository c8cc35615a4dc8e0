#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/container/lazy.h"
#include "src/base/units.h"
#include "src/run/activity.h"
#include "src/run/calls/comm_log.h"
#include "src/run/run_graph.h"
#include "src/run/waits/host_times.h"
#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// What a recorded run did, as its trace says: what launched what, who waited for whom, what threads
// and streams were busy with. One object for all analyses, so that they cannot disagree.
//
// Refers to the trace. A part is found when it is first asked for, and kept; several threads may
// ask.
class RecordedRun {
 public:
  RecordedRun(const Trace& trace) : trace_(&trace) {}  // implicit: a trace stands for its run
  // With these waits instead of those that FindRecordedWaits finds.
  RecordedRun(const Trace& trace, std::vector<OrderEdge> waits)
      : trace_(&trace), known_waits_(std::move(waits)) {}
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  const Trace& trace() const { return *trace_; }
  // Who waited for whom, beyond the trace's dependencies (FindRecordedWaits).
  std::span<const OrderEdge> waits() const;
  // When threads ran what; nullptr where times do not say it (HostTimes::Find).
  const HostTimes* host_times() const;
  // What asked for each piece of device work.
  const Launches& launches() const;
  // By node: duration without what ran inside (SelfTimes).
  std::span<const std::optional<Nanos>> self_times() const;
  // The communications, each once (CommNodes).
  std::span<const CommNode> communications() const;
  // What came before what, by starts and durations (MakeTimedGraph).
  const TimedGraph& graph() const;

 private:
  const Trace* trace_;
  std::optional<std::vector<OrderEdge>> known_waits_;
  Lazy<std::vector<OrderEdge>> waits_;
  Lazy<std::optional<HostTimes>> host_times_;
  Lazy<Launches> launches_;
  Lazy<std::vector<std::optional<Nanos>>> self_times_;
  Lazy<std::vector<CommNode>> communications_;
  Lazy<TimedGraph> graph_;
};

}  // namespace etude
