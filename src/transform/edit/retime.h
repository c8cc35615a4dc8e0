#pragma once

#include <span>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"
#include "src/transform/edit/time_shift.h"

namespace etude {

// Returns the changes of the host's time line that make each host node's own time, outside the
// nodes that it calls, longer by `longer` (by node; negative: shorter, to 0 at the least). Time is
// inserted and cut out where the node runs itself, in proportion.
std::vector<TimeChange> HostChanges(const Trace& trace, std::span<const Nanos> longer);

// Returns the changes of the devices' time line that make device nodes longer, at their ends.
std::vector<TimeChange> DeviceChanges(const Trace& trace, std::span<const Nanos> longer);

// Changes the times of a node that is copied. Labels around a change become longer with it; work of
// a device only by its own `longer`.
void ChangeTimes(NodeRow& row, const TimeShift& host, const TimeShift& device, Nanos longer);

// Returns `trace` with other own times; everything after a change moves.
Result<Trace> Retime(const Trace& trace, std::span<const Nanos> longer, const Limits& limits);

}  // namespace etude
