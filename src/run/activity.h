#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/trace/trace.h"

namespace etude {

// Activity that a node occupies its lane with.
enum class Activity : uint8_t {
  kNone,           // none: it describes, waits, or only requests work
  kCompute,        // kernels; on the host, operators
  kCommunication,  // collectives, sends and receives
  kCopy,           // copies, fills, loads and stores by a device
};
std::string_view Name(Activity activity);  // stable: used in --json

// Returns the node's activity on a device. Work of unknown place (Chakra's generated traces) counts
// as a device's.
Activity DeviceActivity(const Trace& trace, NodeId node);
// Returns the node's activity on the host: operators and communication, and labels of a host that
// computes. A c10d call computes, as all operators do, even if it stands for a lost label.
Activity HostActivity(const Trace& trace, NodeId node);

// Returns the time of a node; nullopt unless its start and its duration are known.
std::optional<Interval> TimeOf(const Trace& trace, NodeId node);
// Returns the interval from the first start to the last end of nodes with times; nullopt if there
// are none.
std::optional<Interval> SpanOf(const Trace& trace);

// Step of the program, by its mark on the host ("ProfilerStep#3"); views point into the trace.
struct StepWindow {
  std::string_view name;
  Interval window;
};
// Returns the steps with times, in order of time; none if durations exclude callees.
std::vector<StepWindow> FindSteps(const Trace& trace);

// Launch on the host of each piece of device work.
class Launches {
 public:
  explicit Launches(const Trace& trace);

  // Returns the runtime call with the work's correlation (the first, if several), or else the host
  // node above the work (linked traces, which have no calls); kNone if neither is known.
  NodeId launcher(NodeId work) const { return launchers_[work.index()]; }
  // Returns the launch time of the work: the begin of the call, or in linked traces of the
  // operator, which is earlier. nullopt if unknown.
  std::optional<Nanos> time(NodeId work) const;

 private:
  const Trace* trace_;
  std::vector<NodeId> launchers_;
};

}  // namespace etude
