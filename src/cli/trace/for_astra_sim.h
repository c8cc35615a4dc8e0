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

// What `etude convert --for astra-sim` is asked.
struct AstraSimRequest {
  struct Input {
    std::string name;
    std::optional<int64_t> rank;  // as the folder knows it
    std::function<Result<Trace>(const RunContext&)> read;
  };
  std::vector<Input> inputs;
  std::string output;  // PREFIX.RANK.et for a single input, else a folder
  bool flops = false;
  bool fill_ranks = false;
  std::string groups;  // file with the ranks of groups; "": the one beside the traces, if any
  int64_t ranks = 0;
  std::optional<int64_t> world_size;  // as the folder knows it
  bool break_cycles = false;
  bool json = false;
  int64_t jobs = 0;  // traces to read at a time; 0: as many as cores
};

// Writes PREFIX.RANK.et for each rank and comm_groups.json, and says what they are and lack.
Result<ExitCode> ConvertForAstraSim(const AstraSimRequest& request, const Console& console);

}  // namespace etude
