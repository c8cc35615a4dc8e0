#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/edited_memory.h"
#include "src/jobs/sim_job.h"
#include "src/report/text/table.h"

namespace etude {

inline constexpr std::string_view kCapacityTable = "capacity";  // key

// Peak memory of the largest rank by kind of device, and whether it fits into `capacity`: of a
// generated job by its plan, of a recorded or edited one that of the tensors, which is a lower
// bound. The memory of other jobs is unknown. `paths`: of the job, beside which its plan may be.
Result<Table> CapacityTable(const std::vector<std::string>& paths, const SimJob& job,
                            const DeviceCapacity& capacity, const RunContext& context);

}  // namespace etude
