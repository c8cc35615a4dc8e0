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

// Facts derived from a recorded run: launches, waits, activities of threads and streams. All
// analyses share one object, so that they agree.
//
// Refers to the trace. Each part is computed on first use and kept. Thread-safe.
class RecordedRun {
 public:
  RecordedRun(const Trace& trace) : trace_(&trace) {}  // implicit: a trace stands for its run
  // Uses these waits instead of those found by FindRecordedWaits.
  RecordedRun(const Trace& trace, std::vector<OrderEdge> waits)
      : trace_(&trace), known_waits_(std::move(waits)) {}
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  const Trace& trace() const { return *trace_; }
  // Returns the waits beyond the trace's dependencies (FindRecordedWaits).
  std::span<const OrderEdge> waits() const;
  // Returns the times of threads; nullptr if unknown (HostTimes::Find).
  const HostTimes* host_times() const;
  // Returns the launches of device work.
  const Launches& launches() const;
  // Returns durations excluding the nodes inside, by node (SelfTimes).
  std::span<const std::optional<Nanos>> self_times() const;
  // Returns the communications, each once (CommNodes).
  std::span<const CommNode> communications() const;
  // Returns the order of events by starts and durations (MakeTimedGraph).
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
