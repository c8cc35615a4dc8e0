#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/jobs/generate/generate_request.h"
#include "src/jobs/job_classes.h"
#include "src/sim/sweep/plan_facts.h"
#include "src/synth/device/misfit.h"
#include "src/synth/job/step_job.h"
#include "src/synth/job/work_times.h"

namespace etude {

// The trace of a rank in a file.
struct RankFile {
  std::string path;
  uint64_t nodes = 0;
  uint64_t bytes = 0;
};

// What ranks hold in memory.
struct PlaceMemory {
  StepStates states;
  Bytes peak;
};

// A generated job, written to files.
struct WrittenJob {
  std::vector<RankFile> files;       // by rank; empty: classes
  std::string groups;                // the file of process groups; "": none
  std::optional<JobCounts> classes;  // of a folder of classes
  // Of models.
  std::string text;              // what was made, for people; several lines
  nlohmann::ordered_json facts;  // the same
  std::optional<PlanFacts> plan;
  std::optional<TimedWorks> durations;  // with a device or measured times
  // By place on the last axis of the job's mesh (pipeline stage, or rank), where it was asked for.
  std::vector<PlaceMemory> memory;
};

// Makes a job and writes it: PREFIX.RANK.et and, if it has process groups, their file beside, or a
// folder of classes. Missing folders are made. Warns of options without effect, and of what
// ASTRA-sim cannot run. kUsage and kBadInput for what does not fit together, kInterrupted once the
// context says so.
Result<WrittenJob> GenerateJob(const GenerateRequest& request, const RunContext& context);

// Whether GenerateJob would make the job, as far as that is known without making it.
Fits CheckGenerate(const GenerateRequest& request, const RunContext& context);

// Checks single words; kUsage for unknown ones, with those that are known.
Status CheckGenerateWhat(std::string_view what);
// A pattern, model or file; `what` is one that is known.
Status CheckGenerateModel(std::string_view what, const std::string& model);
Status CheckGenerateDevice(const std::string& device);

// What there is to generate, for people: "microbench, text, llm, … or diffusion".
std::string GenerateWhatText();

}  // namespace etude
