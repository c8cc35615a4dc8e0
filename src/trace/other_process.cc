#include "src/trace/other_process.h"

#include <string>
#include <string_view>
#include <vector>

#include "src/base/text/quantity.h"

namespace etude {

uint64_t CountOfOtherProcess(const Trace& trace) {
  if (!trace.info().pid) return 0;
  const std::string own = std::to_string(*trace.info().pid);
  std::vector<bool> other(trace.lane_count());
  for (uint32_t i = 0; i < trace.lane_count(); ++i) {
    const std::string_view process = trace.text(trace.lane(LaneId(i)).process);
    // The profiler's own events run in "Spans" or -1.
    other[i] = ParseWhole(process).value_or(-1) >= 0 && process != own;
  }
  uint64_t count = 0;
  ForEachNode(trace, [&](NodeId node) {
    const LaneId lane = trace.lane_id(node);
    const bool is_host = trace.place(node) != Place::kDevice;
    count += is_host && lane && trace.start(node) && other[lane.index()] ? 1 : 0;
  });
  return count;
}

}  // namespace etude
