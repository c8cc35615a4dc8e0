#include "src/synth/work_times.h"

#include <cstddef>
#include <vector>

namespace etude {

Result<TimedWorks> TimeWorks(const TimeSources& sources, StepJob& job) {
  TimedWorks timed;
  for (int64_t place = 0; place < job.places(); ++place) {
    const std::vector<StepWork>& works = job.program(place);
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
      job.SetDuration(place, i, *time);
    }
  }
  return timed;
}

}  // namespace etude
