#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/sweep/plan_facts.h"
#include "src/trace/job/job.h"

namespace etude {

// Which job a simulation runs, as its commands and Python are told.
struct SimJobOptions {
  std::vector<std::string> paths;
  std::string groups;
  std::string compute = "durations";
  bool fill_ranks = false;
  bool with_recording = false;  // times keep what recording cost
  int64_t jobs = 0;

  friend bool operator==(const SimJobOptions&, const SimJobOptions&) = default;
};

// A job as a simulator runs it.
struct SimJob {
  SimWorkload workload;
  // nullopt: of PREFIX.0.et …, which are taken as they are, whether they fit together or not.
  std::optional<Job> job;
  std::string prefix;  // of these
  // How long the step took on the machine where it was recorded, the longest of the ranks': as in
  // the traces, and without recording.
  std::optional<Nanos> recorded_step;
  std::optional<Nanos> program_step;
  // What of the recorded step was taken out as the cost of recording it, the most of a rank.
  Nanos recording_taken;
  std::vector<std::string> warnings;  // while it was read
  // What was done to recorded traces so that they can run, and what was left out; a line each.
  std::vector<std::string> notes;
  std::optional<PlanFacts> plan;  // of a generated job
};

// kBadInput if there are some of PREFIX.0.et …, but not one for each of `npus` NPUs. ASTRA-sim does
// not look at more.
Status CheckRankFiles(const std::string& prefix, int64_t npus);

// `paths` with the files PREFIX.0.et … in the place of each PREFIX. kBadInput if one is missing.
Result<std::vector<std::string>> FilesOfPrefixes(const std::vector<std::string>& paths);

// Reads it for a machine with `npus` NPUs: PREFIX.0.et … as ASTRA-sim does, a folder of classes,
// or traces in any format, of which recorded ones are made graphs of device work on the way
// (docs/models/astra_sim.md). kBadInput unless the job has a trace for each NPU, and no more.
Result<SimJob> ReadSimJob(const SimJobOptions& options, int64_t npus, bool strict,
                          const RunContext& context);

}  // namespace etude
