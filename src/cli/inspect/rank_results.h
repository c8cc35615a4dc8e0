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

// What a command did with one rank: for a program, for a reader, and for the verdict on the job.
struct RankResult {
  int64_t rank = 0;
  nlohmann::ordered_json json;
  std::string text;
  Health health;
  RankRun run;
};

// Prints the ranks and, where they are a job, how they fit together: as text, or as one document of
// `format` that lists them under `key`.
void PrintRankResults(std::vector<RankResult> results, bool as_json, std::string_view format,
                      std::string_view key, const Console& console);

}  // namespace etude
