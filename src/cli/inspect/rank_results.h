#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/cli/app/command.h"
#include "src/run/rank_run.h"

namespace etude {

// A command's result for one rank: as JSON, as text, and for the verdict on the job.
struct RankResult {
  int64_t rank = 0;
  nlohmann::ordered_json json;
  std::string text;
  Health health;
  RankRun run;
};

// Prints the results and, for ranks of one job, how they fit together: as text, or as one document
// of `format` with the results under `key`.
void PrintRankResults(std::vector<RankResult> results, bool as_json, std::string_view format,
                      std::string_view key, const Console& console);

}  // namespace etude
