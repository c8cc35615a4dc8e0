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
  std::vector<std::string> command;  // empty: as job.json has it
  bool trust = false;                // run that also where somebody else recorded the folder
  // A program that `etude benchmark` wrote, which is compared in place of the replay; "" for none.
  std::string benchmark;
  std::optional<int64_t> rank;
  int64_t pairs = 30;
  int64_t starts = 3;  // of both sides, with a share of the pairs each
  // "decided": goes on with more starts until no bar is undetermined, up to kMorePairs times the
  // pairs; "": does not.
  std::string until;
  int64_t warmup = 5;  // steps
  // Steps of either side in its turn before the one that is measured; unknown: as short steps need.
  std::optional<int64_t> lead;
  int64_t seed = 0;  // of the order within pairs, and of the intervals
  int64_t timeout_s = 300;
  std::vector<std::string> bars;       // "NAME=SHARE", "NAME=none"
  bool pin = false;                    // the replay's ranks, as `etude replay` takes it
  bool experimental = false;           // as `etude replay` takes it
  std::vector<std::string> libraries;  // the same
  bool finish = false;
  std::string gaps = "recorded";  // as `etude replay` takes it
  bool json = false;
  std::vector<std::string> certificates;  // files to write one to
  bool keep_paths = false;                // with their folders

  friend bool operator==(const CompareRunOptions&, const CompareRunOptions&) = default;
};

inline constexpr int64_t kMorePairs = 10;

// Runs the original program again, in turn with its replay, and judges the replay by it. Leaves
// compare.N.json in the folder, and certificates where they are asked for. kNo if a bar is not met.
Result<ExitCode> CompareByRunning(const CompareRunOptions& options, const Console& console);

// "8%" or "0.08". `option` is named in the error, kUsage.
Result<double> ParseShare(const std::string& option, std::string_view text);

}  // namespace etude
