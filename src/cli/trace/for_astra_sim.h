#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/trace/trace.h"

namespace etude {

// Request of `etude convert --for astra-sim`.
struct AstraSimRequest {
  struct Input {
    std::string name;
    std::optional<int64_t> rank;  // from the folder
    std::function<Result<Trace>(const RunContext&)> read;
  };
  std::vector<Input> inputs;
  std::string output;  // PREFIX.RANK.et for a single input, otherwise a folder
  bool flops = false;
  bool fill_ranks = false;
  std::string groups;  // file that lists the ranks of groups; "": the one beside the traces, if any
  int64_t ranks = 0;
  std::optional<int64_t> world_size;  // from the folder
  bool break_cycles = false;
  bool json = false;
  int64_t jobs = 0;  // traces read concurrently; 0: number of cores
};

// Writes PREFIX.RANK.et for each rank and comm_groups.json, and reports their contents and
// omissions.
Result<ExitCode> ConvertForAstraSim(const AstraSimRequest& request, const Console& console);

}  // namespace etude
