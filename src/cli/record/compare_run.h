#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/app/command.h"
#include "src/report/certificate/run_comparison.h"

namespace etude {

struct CompareRunOptions {
  std::string path;                  // a capture folder
  std::vector<std::string> command;  // empty: from job.json
  bool trust = false;                // run that command even if another user recorded the folder
  // A program written by `etude benchmark`, compared instead of the replay; "": none.
  std::string benchmark;
  // Python that runs the benchmark, or starts its ranks; "": that of the command, else python3.
  std::string python;
  std::string device;  // of the replay or the benchmark; "": by the trace, or the benchmark's CPU
  std::optional<int64_t> rank;
  int64_t pairs = 30;
  int64_t starts = 3;  // starts of both sides, which divide the pairs
  // "decided": adds starts until no bar is undetermined, up to kMorePairs times the pairs; "": does
  // not.
  std::string until;
  int64_t warmup = 5;  // steps
  // Unmeasured steps of a side before its measured step; nullopt: chosen by step length.
  std::optional<int64_t> lead;
  int64_t seed = 0;  // for the order within pairs, and for intervals
  int64_t timeout_s = 300;
  std::vector<std::string> bars;       // "NAME=SHARE", "NAME=none"
  bool pin = false;                    // pins the replay's ranks, as in `etude replay`
  bool experimental = false;           // as in `etude replay`
  std::vector<std::string> libraries;  // as in `etude replay`
  bool finish = false;
  std::string gaps = "recorded";  // as in `etude replay`
  bool json = false;
  std::vector<std::string> certificates;  // files to write certificates to
  bool keep_paths = false;                // keeps folders in certificates

  friend bool operator==(const CompareRunOptions&, const CompareRunOptions&) = default;
};

inline constexpr int64_t kMorePairs = 10;

// Returns whether `until` asks for more pairs than the complete comparison `run` has.
bool WantsMorePairs(const CompareRunOptions& options, const RunComparison& run);

// Runs the original program alternately with its replay and judges the replay. Writes
// compare.N.json in the folder, and certificates on request.
Result<RunComparison> MeasureByRunning(const CompareRunOptions& options, const Console& console);
// Also prints the comparison. kNo if a bar is not met.
Result<ExitCode> CompareByRunning(const CompareRunOptions& options, const Console& console);

// Parses "8%" or "0.08". kUsage with the name `option` on failure.
Result<double> ParseShare(const std::string& option, std::string_view text);

}  // namespace etude
