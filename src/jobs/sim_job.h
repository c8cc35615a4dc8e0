#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/jobs/edited_memory.h"
#include "src/jobs/what_if.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/sweep/plan_facts.h"
#include "src/trace/job/job.h"

namespace etude {

// Options for the job of a simulation, for its commands and Python.
struct SimJobOptions {
  std::vector<std::string> paths;
  std::string groups;
  std::string compute = "durations";
  bool fill_ranks = false;
  bool with_recording = false;  // times keep the cost of recording
  // Communications of a recorded job get the times for RecordedCommunications.
  bool recorded_communication = false;
  bool recorded_launches = false;  // jobs with device work keep the times of the host's launches
  int64_t jobs = 0;
  WhatIfOptions what_if;  // edits of a recorded job
  bool memory = false;    // compute SimJob::memory

  friend bool operator==(const SimJobOptions&, const SimJobOptions&) = default;
};

// A job in the form that a simulator runs.
struct SimJob {
  SimWorkload workload;
  // nullopt for PREFIX.0.et …, which run unchanged, whether they fit together or not.
  std::optional<Job> job;
  std::string prefix;  // prefix of these files
  // Duration of the step on the recording machine, the maximum over ranks: as in the traces, and
  // without recording.
  std::optional<Nanos> recorded_step;
  std::optional<Nanos> program_step;
  // The cost of recording that was subtracted from the recorded step, the maximum over ranks.
  Nanos recording_taken;
  std::vector<std::string> warnings;  // issued while it was read
  // Changes to recorded traces that let them run, and omissions, one line each.
  std::vector<std::string> notes;
  std::optional<PlanFacts> plan;          // for a generated job
  std::vector<AppliedEdit> edits;         // by SimJobOptions::what_if
  std::optional<EditedFrom> edited_from;  // of the folder of an edited job
  EditedMemory memory;                    // of recorded and edited jobs, if requested
};

// Returns SimJob::recording_taken as a sentence, with its share of the step if that is large.
std::string TakenText(const SimJob& job);

// Returns kBadInput if some of PREFIX.0.et … exist, but not one for each of `npus` NPUs. ASTRA-sim
// reads no further ones.
Status CheckRankFiles(const std::string& prefix, int64_t npus);

// Returns `paths` with the files PREFIX.0.et … in the place of each PREFIX. Returns kBadInput if
// one is missing.
Result<std::vector<std::string>> FilesOfPrefixes(const std::vector<std::string>& paths);

// Reads the job for a machine with `npus` NPUs; 0: as many as the job has ranks. Inputs are
// PREFIX.0.et …, as in ASTRA-sim, a folder of classes, or traces in any format. Recorded traces
// become graphs of device work (docs/models/astra_sim.md). Returns kBadInput unless the job has
// exactly one trace for each NPU.
//
// `measure` measures operators of edited sizes; required for WhatIfOptions::measure only.
Result<SimJob> ReadSimJob(const SimJobOptions& options, int64_t npus, bool strict,
                          const RunContext& context, const OperatorMeasurer& measure = {});

}  // namespace etude
