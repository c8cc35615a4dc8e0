#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/inspected.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"
#include "src/transform/read_job.h"

namespace etude {

// An inspection: a command, and a function of the Python module. Both are made from its row.
struct Inspection {
  std::string_view name;                   // of the command: "critical-path"
  std::string_view summary;                // in the overview of commands, and in Python's help
  const std::vector<std::string>& tables;  // keys, in order
  RankInput (*choose)(const CaptureRank&);
  // Returns tables and notes of a recorded run. `input` and `read`: how the run was read.
  Result<Inspected> (*inspect)(const RecordedRun& run, const RankInput& input,
                               const ReadOptions& read, const RunContext& context);
  bool of_times = true;  // the figures are affected by recording overhead

  // Returns the format of its JSON: "etude-critical-path".
  std::string format() const { return "etude-" + std::string(name); }
};

// Returns all inspections, in the order of the overview of commands.
std::span<const Inspection> Inspections();

// Runs an inspection of a trace; the result includes rank, path and health.
Result<Inspected> Inspect(const Inspection& inspection, const Trace& trace, const RankInput& input,
                          const ReadOptions& read, const RunContext& context);

struct ComparedRanks {
  Inspected found;
  bool same = true;
};
// Returns the differences of two traces, as in `etude diff`. `path`: of `a`.
ComparedRanks CompareTraces(const Trace& a, const Trace& b, const std::string& path);

// Pairs of ranks of two jobs.
struct RankPairs {
  struct Pair {
    size_t a = 0;
    size_t b = 0;
  };
  std::vector<Pair> pairs;     // indices
  std::vector<size_t> only_a;  // ranks in one job only count as a difference
  std::vector<size_t> only_b;
};
// Pairs ranks by number. Two single traces are paired regardless of their ranks.
RankPairs PairRanks(std::span<const std::optional<int64_t>> a,
                    std::span<const std::optional<int64_t>> b);

}  // namespace etude
