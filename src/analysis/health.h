#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/analysis/time/graph_time.h"
#include "src/run/rank_run.h"
#include "src/trace/trace.h"

namespace etude {

// Usability of a trace.
enum class Verdict : uint8_t {
  kGood,       // complete
  kUsable,     // something is missing or guessed; reasons name the affected figures
  kDontTrust,  // too much is missing or contradictory: figures would mislead
};
std::string_view Name(Verdict verdict);  // "good", "usable", "don't trust"

// Waits found in addition to the trace's dependencies.
struct WaitCounts {
  uint64_t count = 0;
  uint64_t guessed = 0;  // inferred from times only (Evidence::kByTime)

  friend bool operator==(const WaitCounts&, const WaitCounts&) = default;
};

// Verdict with its reasons; the worst reason decides.
struct Health {
  struct Reason {
    Verdict verdict = Verdict::kUsable;
    std::string name;  // stable: used in --json
    std::string text;

    friend bool operator==(const Reason&, const Reason&) = default;
  };
  std::vector<Reason> reasons;  // worst first
  // Time of the graph alone; nullopt: unknown.
  std::optional<GraphTime> graph_time;
  std::optional<WaitCounts> waits;  // nullopt: none were found, or the trace states all of its
                                    // waits

  Verdict verdict() const;
  // Adds the reasons of a part, prefixed with its name, if any: "rank 3: …". Duplicates are added
  // once, because several traces of a rank may have the same.
  void Add(const Health& part, std::string_view name);
  // Removes the graph's time, for a part of a run, whose graph explains nothing.
  void LeaveOutGraphTime();
};

// Judges a trace by the conditions counted while reading and linking it and its sources (Stats),
// and by its contents: overlapping work on a stream, launches without work and work without
// launches, gaps without activity, argument lists truncated by PyTorch's observer, missing steps,
// and the agreement of the graph's time with that of `run`, whose rank run (MakeRankRun) is `rank`.
// docs/health.md has the thresholds. O(n log n).
Health JudgeTrace(const RecordedRun& run, const RankRun& rank);
// Judges a trace, making its run and rank run.
Health JudgeTrace(const Trace& trace, int64_t rank = 0);

// Judges how the ranks of a job fit together. `graph_time` is that of all ranks; nullopt: unknown.
Health JudgeJob(const CommMatch& match, std::optional<GraphTime> graph_time = std::nullopt);

}  // namespace etude
