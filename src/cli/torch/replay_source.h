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

// A recorded step with facts of its program.
struct ReplaySource {
  Trace trace;
  std::optional<int64_t> rank;       // from the folder
  StepTimes original;                // steps of the recorded kind
  StepTimes original_mix;            // steps of all recorded kinds
  std::vector<double> step_weights;  // JobRank::StepWeights
  std::vector<bool> main_steps;      // recorded steps that `original` covers; may be empty
  std::optional<Nanos> host_time;    // of a step that waits for no device
  std::optional<int64_t> threads;
  std::optional<int64_t> mmap_threshold;
  std::optional<int64_t> minor_faults;
  std::optional<Bytes> memory_growth;  // JobRank::memory_growth
  bool compiled_kernels = false;
  Waiting waiting;
  std::vector<LaunchedWork> launched;  // device work by host node
  std::vector<std::string> files;      // files of the trace
  std::vector<std::string> notes;      // anomalies of the recording
  std::string job;                     // JobFile::id of the folder; "" if missing
  std::string result_path;             // path for the report; "" unless the source is a capture

  // Returns the kinds of recorded steps, by the number of program steps they represent.
  std::vector<StepKind> Kinds() const;
  // Returns the kind that `original` covers; if the folder does not specify it, the one with the
  // median time.
  const StepKind& MainKind(const std::vector<StepKind>& kinds) const;
};

// Opens a trace, or the trace of a rank in a capture folder, with the operators' recorded times if
// available.
Result<ReplaySource> OpenSource(const std::string& path, std::optional<int64_t> wanted_rank,
                                bool strict, const RunContext& context);

// Maximum of --threads.
inline constexpr int64_t kThreadsMax = 1024;

// Copies facts of the program to `options`. `threads`: requested number, if any.
void FollowProgram(const ReplaySource& source, std::optional<int64_t> threads,
                   ReplayOptions& options);

// Number of ranks of a job, and the participating ranks in order.
struct RanksOfJob {
  int64_t size = 1;
  std::vector<int64_t> present;
};

// Returns the ranks of the folder `path` selected by `wanted`, as in ChooseFromRanks. kUsage for an
// invalid text or an unknown rank, kBadInput for a rank without trace.
Result<RanksOfJob> ChooseRanks(const std::string& path, const std::string& wanted,
                               const RunContext& context);

// Returns the rank of `source` as the only participant of its job; kBadInput if the job has too
// many ranks.
Result<RanksOfJob> AloneIn(const ReplaySource& source);

}  // namespace etude
