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

// What an inspection command reads of a rank, and what it finds there: the same from the command
// line and from Python.
struct Inspection {
  std::string_view format;                 // of its JSON: "etude-stats"
  const std::vector<std::string>& tables;  // keys, in their order
  RankInput (*choose)(const CaptureRank&);
  // Tables and notes of a recorded run; `input` and `read` are where and how it was read.
  Result<Inspected> (*inspect)(const RecordedRun& run, const RankInput& input,
                               const ReadOptions& read, const RunContext& context);
  bool of_times = true;  // what recording added to times is in its figures
};

const Inspection& StatsInspection();
const Inspection& BreakdownInspection();
const Inspection& CriticalPathInspection();
const Inspection& MemoryInspection();

// What `inspection` finds in a trace, with its rank, path and health.
Result<Inspected> Inspect(const Inspection& inspection, const Trace& trace, const RankInput& input,
                          const ReadOptions& read, const RunContext& context);

struct ComparedRanks {
  Inspected found;
  bool same = true;
};
// The differences of two traces, as `etude diff` shows them; `path` is that of `a`.
ComparedRanks CompareTraces(const Trace& a, const Trace& b, const std::string& path);

// Which ranks of two jobs belong together.
struct RankPairs {
  struct Pair {
    size_t a = 0;
    size_t b = 0;
  };
  std::vector<Pair> pairs;     // indices
  std::vector<size_t> only_a;  // ranks of one side: a difference
  std::vector<size_t> only_b;
};
// Single traces belong together whatever their ranks.
RankPairs PairRanks(std::span<const std::optional<int64_t>> a,
                    std::span<const std::optional<int64_t>> b);

}  // namespace etude
