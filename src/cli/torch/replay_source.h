#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/analysis/compare/step_kinds.h"
#include "src/analysis/time/host_gaps.h"
#include "src/analysis/time/launched_work.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/replay/replay_report.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// A recorded step and what is known about the program it comes from.
struct ReplaySource {
  Trace trace;
  std::optional<int64_t> rank;       // as the folder says
  StepTimes original;                // of steps like the recorded one
  StepTimes original_mix;            // of steps of all recorded kinds
  std::vector<double> step_weights;  // JobRank::StepWeights
  std::vector<bool> main_steps;      // of the recorded steps those that `original` is of; or empty
  std::optional<Nanos> host_time;    // of a step, which waits for no device
  std::optional<int64_t> threads;
  std::optional<int64_t> mmap_threshold;
  std::optional<int64_t> minor_faults;
  std::optional<Bytes> memory_growth;  // JobRank::memory_growth
  bool compiled_kernels = false;
  Waiting waiting;
  std::vector<LaunchedWork> launched;  // what devices did for which host node
  std::vector<std::string> files;      // that the trace was read from
  std::vector<std::string> notes;      // what was unusual when it was recorded
  std::string job;                     // JobFile::id of the folder; "" if it has none
  std::string result_path;             // where the report is kept; "" for what is no capture

  // The kinds of recorded steps, by how many of the program's steps they stand for.
  std::vector<StepKind> Kinds() const;
  // That of them which `original` is of; where the folder does not say the one with the median
  // time.
  const StepKind& MainKind(const std::vector<StepKind>& kinds) const;
};

// Opens a trace, or that of a rank of a capture folder, with the operators' recorded times where
// they can be had.
Result<ReplaySource> OpenSource(const std::string& path, std::optional<int64_t> wanted_rank,
                                bool strict, const RunContext& context);

// Most threads that --threads may name.
inline constexpr int64_t kThreadsMax = 1024;

// Takes what is known of the program into `options`; `threads`: those asked for, if any.
void FollowProgram(const ReplaySource& source, std::optional<int64_t> threads,
                   ReplayOptions& options);

// The ranks of a job, and those of them that take part, in order.
struct RanksOfJob {
  int64_t size = 1;
  std::vector<int64_t> present;
};

// The ranks of the folder `path` that `wanted` means, as ChooseFromRanks takes it. kUsage for
// another text or a rank that the job has not, kBadInput without a trace of one.
Result<RanksOfJob> ChooseRanks(const std::string& path, const std::string& wanted,
                               const RunContext& context);

// The rank of `source`, alone in its job; kBadInput if that has more ranks than can be listed.
Result<RanksOfJob> AloneIn(const ReplaySource& source);

}  // namespace etude
