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
#include "src/jobs/generate/model_kind.h"
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

// The memory of ranks at one place.
struct PlaceMemory {
  StepStates states;
  Bytes peak;
};

// A generated job that was written to files.
struct WrittenJob {
  std::vector<RankFile> files;       // by rank; empty: classes
  std::string groups;                // the file of process groups; "": none
  std::optional<JobCounts> classes;  // for a folder of classes
  // For models:
  std::string text;              // description of the job, several lines
  nlohmann::ordered_json facts;  // the same facts as JSON
  std::optional<PlanFacts> plan;
  nlohmann::ordered_json settings;      // as in GeneratedJob
  std::optional<TimedWorks> durations;  // with a device or measured times
  // By place on the last axis of the job's mesh (pipeline stage, or rank), if requested.
  std::vector<PlaceMemory> memory;
};

// Makes a job and writes it: PREFIX.RANK.et and, if it has process groups, their file next to them,
// or a folder of classes. Creates missing folders. Warns of options without effect, and of parts
// that ASTRA-sim cannot run. Returns kUsage and kBadInput for settings that do not fit together,
// and kInterrupted if the context is interrupted.
Result<WrittenJob> GenerateJob(const GenerateRequest& request, const RunContext& context);

// Returns the request with the contents of its files: models, devices and measured times. Returns
// kIo for missing files and kBadInput for a measured trace without products.
Result<GenerateRequest> WithFiles(GenerateRequest request, const RunContext& context);

// The plan of a job that is not written.
struct RequestedPlan {
  PlanFacts facts;
  GeneratedBatch batch;
  nlohmann::ordered_json settings;  // as in GeneratedJob
};
// Makes a model's job without writing it, and returns its plan. Errors as in GenerateJob.
Result<RequestedPlan> PlanOfRequest(const GenerateRequest& request, const RunContext& context);

// Returns whether GenerateJob would make the job, as far as this is known without making it.
Fits CheckGenerate(const GenerateRequest& request, const RunContext& context);

// Checks single words. Returns kUsage for unknown ones, with the known ones.
Status CheckGenerateWhat(std::string_view what);
// Checks a pattern, model or file. `what` is a known word.
Status CheckGenerateModel(std::string_view what, const std::string& model);
Status CheckGenerateDevice(const std::string& device);

// Returns the words that `generate` accepts, for messages: "microbench, text, llm, … or diffusion".
std::string GenerateWhatText();

}  // namespace etude
