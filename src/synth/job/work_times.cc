#include "src/synth/job/work_times.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace etude {

Result<TimedWorks> TimeWorks(const TimeSources& sources, StepJob& job) {
  TimedWorks timed;
  for (int64_t place = 0; place < job.places(); ++place) {
    const std::vector<StepWork>& works = job.program(place);
    int64_t sum = 0;
    for (size_t i = 0; i < works.size(); ++i) {
      const StepWork& work = works[i];
      if (work.communicates()) continue;
      std::optional<Nanos> time;
      if (sources.measured && work.product.count != 0) {
        time = sources.measured->Find(work.product, work.type);
      }
      if (time) {
        ++timed.measured;
      } else if (sources.device) {
        ETUDE_ASSIGN_OR_RETURN(time, RooflineTime(*sources.device, work));
        ++timed.modelled;
      } else {
        ++timed.unknown;
        continue;
      }
      if (__builtin_add_overflow(sum, time->count, &sum)) {
        return BadInput(fmt::format(
            "the computations of a rank up to '{}' take more than {:.1e} s, the maximum", work.name,
            kMostSeconds));
      }
      job.SetDuration(place, i, *time);
    }
  }
  return timed;
}

}  // namespace etude
