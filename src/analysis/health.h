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

// What a trace is good for.
enum class Verdict : uint8_t {
  kGood,       // says all it should
  kUsable,     // something is missing or guessed; figures that rest on it are marked by the reasons
  kDontTrust,  // so much is missing or contradictory that figures would mislead
};
std::string_view Name(Verdict verdict);  // "good", "usable", "don't trust"

// Waits that were found beyond the trace's dependencies.
struct WaitCounts {
  uint64_t count = 0;
  uint64_t guessed = 0;  // of these only times speak (Evidence::kByTime)

  friend bool operator==(const WaitCounts&, const WaitCounts&) = default;
};

// The worst of its reasons decides.
struct Health {
  struct Reason {
    Verdict verdict = Verdict::kUsable;
    std::string name;  // stable: appears in --json
    std::string text;

    friend bool operator==(const Reason&, const Reason&) = default;
  };
  std::vector<Reason> reasons;  // worst first
  // What the graph alone says of the recorded time; nullopt: unknown.
  std::optional<GraphTime> graph_time;
  std::optional<WaitCounts> waits;  // nullopt: none were found, or the trace states all it has

  Verdict verdict() const;
  // Takes over the reasons of a part, with its name, if it has one, in front: "rank 3: …". Each
  // once: several traces of a rank may say the same.
  void Add(const Health& part, std::string_view name);
  // Of a part of a run, whose graph explains nothing.
  void LeaveOutGraphTime();
};

// Judges by what was met while the trace, and the traces it was made from, were read and linked
// (Stats), and by what is in it: work that overlaps on a stream, launches without work and work
// without launches, gaps in which nothing ran, argument lists that PyTorch's observer cut, steps
// that are missing, and how far the graph explains the time of `run`, which is the trace's
// (MakeRankRun). docs/health.md has the thresholds. O(n log n).
Health JudgeTrace(const RecordedRun& run, const RankRun& rank);
// The same where nobody needs the rank's run besides.
Health JudgeTrace(const Trace& trace, int64_t rank = 0);

// Judges how the ranks of a job fit together. `graph_time`: of all of them; nullopt: unknown.
Health JudgeJob(const CommMatch& match, std::optional<GraphTime> graph_time = std::nullopt);

}  // namespace etude
