#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/trace/trace.h"

namespace etude {

// What a node keeps its lane busy with.
enum class Activity : uint8_t {
  kNone,           // nothing: it describes, waits, or only asks for work
  kCompute,        // kernels; on the host, operators
  kCommunication,  // collectives, sends and receives
  kCopy,           // copies, fills, loads and stores by a device
};
std::string_view Name(Activity activity);  // stable: appears in --json

// What the node does on a device. Work of which the file does not say where it ran (Chakra's
// generated traces) counts as a device's.
Activity DeviceActivity(const Trace& trace, NodeId node);
// What the node does on the host: operators and communication, and labels of a host that computes.
// A call of c10d's computes, as all operators do, also where it stands for a lost label.
Activity HostActivity(const Trace& trace, NodeId node);

// The time of a node; nullopt unless its start and its duration are known.
std::optional<Interval> TimeOf(const Trace& trace, NodeId node);
// From the first start to the last end of nodes with times; nullopt if there are none.
std::optional<Interval> SpanOf(const Trace& trace);

// One step of the program as its mark on the host says ("ProfilerStep#3"); views point into the
// trace.
struct StepWindow {
  std::string_view name;
  Interval window;
};
// The steps with times, in order of time; none where durations are without callees.
std::vector<StepWindow> FindSteps(const Trace& trace);

// What on the host asked for each piece of device work.
class Launches {
 public:
  explicit Launches(const Trace& trace);

  // The runtime's call, by correlation, or else the host node above the work (linked traces, which
  // have no calls); kNone if neither is known. Of several calls with one correlation the first.
  NodeId launcher(NodeId work) const { return launchers_[work.index()]; }
  // When the work was asked for: when the call began; of linked traces when the operator began,
  // which is earlier. nullopt if the trace does not say.
  std::optional<Nanos> time(NodeId work) const;

 private:
  const Trace* trace_;
  std::vector<NodeId> launchers_;
};

}  // namespace etude
