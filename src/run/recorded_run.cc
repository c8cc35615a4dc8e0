#include "src/run/recorded_run.h"

#include "src/run/exclusive_times.h"
#include "src/run/waits/recorded_waits.h"

namespace etude {

std::span<const OrderEdge> RecordedRun::waits() const {
  if (known_waits_) return *known_waits_;
  return waits_.Get([&] { return FindRecordedWaits(*trace_); });
}

const HostTimes* RecordedRun::host_times() const {
  const auto& times = host_times_.Get([&] { return HostTimes::Find(*trace_, waits()); });
  return times ? &*times : nullptr;
}

const Launches& RecordedRun::launches() const {
  return launches_.Get([&] { return Launches(*trace_); });
}

std::span<const std::optional<Nanos>> RecordedRun::self_times() const {
  return self_times_.Get([&] { return SelfTimes(*trace_); });
}

std::span<const CommNode> RecordedRun::communications() const {
  return communications_.Get([&] { return CommNodes(*trace_); });
}

const TimedGraph& RecordedRun::graph() const {
  return graph_.Get([&] { return MakeTimedGraph(*this); });
}

}  // namespace etude
