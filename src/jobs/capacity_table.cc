#include "src/jobs/capacity_table.h"

#include <algorithm>
#include <optional>
#include <string>

#include "src/jobs/plan_file.h"

namespace etude {

Result<Table> CapacityTable(const std::vector<std::string>& paths, const SimJob& job,
                            const DeviceCapacity& capacity, const RunContext& context) {
  Table table{.key = std::string(kCapacityTable),
              .title = "memory of the largest rank",
              .columns = {{"device", "device"},
                          {"source", "source"},
                          {"memory_bytes", "peak", Unit::kBytes},
                          {"capacity", "into"},
                          {"capacity_bytes", "capacity", Unit::kBytes},
                          {"fits", "fits"}},
              .rows = {}};
  const auto add = [&](const std::string& device, const char* source, std::optional<Bytes> peak,
                       bool matters) {
    Cell fits;
    if (peak && matters) fits = std::string(peak->count <= capacity.bytes.count ? "yes" : "no");
    table.rows.push_back(
        {device, std::string(source), ToCell(peak), capacity.device, capacity.bytes.count, fits});
  };
  if (job.plan) {
    add("device", "plan", job.plan->memory.peak, /*matters=*/true);
    return table;
  }
  if (job.memory.before.empty()) {
    ETUDE_ASSIGN_OR_RETURN(const std::optional<FoundPlan> found, FindPlanOfJob(paths, context));
    if (found && found->mismatch.empty()) {
      add("device", "plan", found->plan.facts.memory.peak, /*matters=*/true);
      return table;
    }
  }
  // The host's memory is not that of a job on accelerators.
  const bool on_host =
      std::ranges::all_of(job.memory.before, [](const auto& peak) { return peak.first == "cpu"; });
  for (const auto& [device, before] : job.memory.before) {
    const auto after = job.memory.after.find(device);
    add(device, "tensors",
        after == job.memory.after.end() ? std::nullopt : std::optional(after->second),
        on_host || device != "cpu");
  }
  if (table.rows.empty()) add("", "unknown", std::nullopt, /*matters=*/true);
  return table;
}

}  // namespace etude
