#pragma once

#include <string_view>

#include "src/jobs/edited_memory.h"
#include "src/jobs/sim_job.h"
#include "src/report/text/table.h"

namespace etude {

inline constexpr std::string_view kCapacityTable = "capacity";  // key

// Peak memory of the largest rank by kind of device, and whether it fits into `capacity`: of a
// generated job by its plan, of a recorded or edited one that of the tensors, which is a lower
// bound. The memory of other jobs is unknown.
Table CapacityTable(const SimJob& job, const DeviceCapacity& capacity);

}  // namespace etude
