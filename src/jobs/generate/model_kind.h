#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/jobs/generate/generate_request.h"
#include "src/synth/device/misfit.h"
#include "src/synth/job/step_job.h"
#include "src/synth/preset.h"

namespace etude {

// The amount that a step of a generated job processes.
struct GeneratedStep {
  std::string item;              // "token", "sample", "image"
  int64_t items = 0;             // over all ranks
  std::optional<double> flops;   // required by the model; nullopt: those of its matrix products
  std::optional<double> bubble;  // BubbleShare; nullopt: unknown
};

// The batch of a generated job: their product is its global batch.
struct GeneratedBatch {
  int64_t replicas = 1;
  int64_t samples = 1;  // or sequences, in a micro-batch of a replica
  int64_t micro_batches = 1;

  int64_t of_replica() const { return samples * micro_batches; }
};

struct GeneratedJob {
  StepJob job;
  // Description of the job: "llama-3-8b: 8,030,261,248 parameters, tp 2 × cp 1 × dp 2 × pp 2".
  std::string text;
  nlohmann::ordered_json facts;  // the same facts as JSON
  GeneratedStep step;
  GeneratedBatch batch;
  // Values of the options that make the job, by key ("micro_batches"), with those of the model and
  // the defaults.
  nlohmann::ordered_json settings;
};

// A kind of models from which GenerateJob makes jobs.
struct ModelKind {
  std::string_view name;
  std::string_view family;  // "language": kinds of a family are shown together in the help
  std::vector<std::string_view> options;  // ModelOptions that it takes
  // Known models, each with the source of its numbers.
  std::vector<std::pair<std::string_view, std::string_view>> presets;
  // Models of other kinds that `make` accepts too.
  std::vector<std::string_view> others;
  // Makes a job. `model`: a preset, or a file with a model.
  Result<GeneratedJob> (*make)(const std::string& model, const ModelOptions& options,
                               const RunContext& context);
  // Returns whether `make` would make a job, without making it. nullptr if only `make` can
  // determine this.
  Fits (*check)(const std::string& model, const ModelOptions& options,
                const RunContext& context) = nullptr;
};

std::span<const ModelKind> ModelKinds();
// Returns the kind with this name, and nullptr if there is none.
const ModelKind* FindModelKind(std::string_view name);

template <typename Model>
void AddPresets(std::span<const Preset<Model>> presets, ModelKind& kind) {
  for (const Preset<Model>& preset : presets) {
    kind.presets.emplace_back(preset.name, preset.source);
  }
}

ModelKind LlmKind();
ModelKind DlrmKind();
ModelKind MoeKind();
ModelKind CnnKind();
ModelKind DiffusionKind();

// Returns the text of the model's file: that of the options, else read.
Result<std::string> TextOfModel(const std::string& model, const ModelOptions& options,
                                const Limits& limits);

// Returns the kUsage error for a model that is neither a preset of `kind` nor a file.
Error UnknownModel(const ModelKind& kind, const std::string& model);

// Returns the value of a word. Returns kUsage for an unknown word.
template <typename T>
Result<T> MeaningOf(std::string_view option, const std::optional<std::string>& word,
                    const std::vector<std::pair<std::string_view, T>>& words, T otherwise) {
  if (!word) return otherwise;
  std::vector<std::string_view> names;
  for (const auto& [name, meaning] : words) {
    if (name == *word) return meaning;
    names.push_back(name);
  }
  return MakeError(ErrorCode::kUsage, fmt::format("{}: found '{}', expected {}", option, *word,
                                                  fmt::join(names, ", ")));
}

// Returns the value of a word from a table, and nullopt without a word.
template <typename T>
Result<std::optional<T>> MeaningOf(std::string_view option, const std::optional<std::string>& word,
                                   std::span<const std::pair<std::string_view, T>> words) {
  if (!word) return std::optional<T>();
  ETUDE_ASSIGN_OR_RETURN(const T meaning,
                         MeaningOf(option, word, {words.begin(), words.end()}, words[0].second));
  return std::optional<T>(meaning);
}

// Returns kUsage if one of `unfit` was given. These options belong to another phase than the
// requested one.
Status CheckPhaseOptions(const ModelOptions& options, std::span<const std::string_view> unfit,
                         std::string_view phase);

// Returns the key of an option in a model's file: "first_bucket" for "--first-bucket",
// "sequence_parallel" for "--no-sequence-parallel".
std::string KeyOfOption(std::string_view option);

// An option that has no effect because of others.
struct IdleOption {
  std::string_view name;
  bool idle = false;
  std::string_view why;
};
// Warns of the given options among them, and of keys of [plan] in a file with the same meaning.
void WarnOfIdle(const ModelOptions& options, std::span<const IdleOption> rows,
                const RunContext& context, const KeyPlaces& places = {});

// Returns the value of `--bucket`. Returns kUsage if it is not a size.
Result<Bytes> BucketOf(const ModelOptions& options, Bytes otherwise);
// Returns the value of `--first-bucket`.
Result<Bytes> FirstBucketOf(const ModelOptions& options, Bytes otherwise);

}  // namespace etude
