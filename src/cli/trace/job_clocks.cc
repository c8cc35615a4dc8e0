#include "src/cli/trace/job_clocks.h"

#include <fmt/format.h>

#include "src/analysis/comm/comm_match.h"

namespace etude {

Result<std::vector<Nanos>> ClockOffsets(const std::vector<CommLog>& logs,
                                        const std::string& clocks) {
  std::vector<Nanos> offsets(logs.size());
  if (logs.size() < 2) return offsets;
  if (clocks == "keep") {
    // Unaligned: the origin of times is independent of the clock.
    const std::vector<Nanos> origins = OriginsOf(logs);
    for (size_t i = 0; i < logs.size(); ++i) offsets[i] = Nanos{} - origins[i];
    return offsets;
  }
  const CommMatch match = MatchComms(logs);
  for (size_t i = 0; i < logs.size(); ++i) {
    const ClockOffset& clock = match.clocks[i];
    if (clock.is_none) continue;  // nothing to shift
    if (!clock.offset) {
      return BadInput(
          fmt::format("rank {}: cannot determine its clock offset to rank {}: {}; --clocks keep "
                      "leaves times unchanged",
                      logs[i].rank, logs.front().rank, clock.reason));
    }
    offsets[i] = *clock.offset;
  }
  return offsets;
}

}  // namespace etude
