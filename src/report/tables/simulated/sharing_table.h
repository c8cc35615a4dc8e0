#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/report/text/table.h"
#include "src/sim/program/placed_jobs.h"
#include "src/sim/result/sharing.h"

namespace etude {

inline constexpr std::string_view kSharingTable = "jobs";  // key

// A row per job. `names` and `placed` are those of the study's jobs.
Table SharingTable(const SharingStudy& study, std::span<const std::string> names,
                   std::span<const PlacedJob> placed);

}  // namespace etude
