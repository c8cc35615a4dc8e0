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

// What a step of a generated job processes.
struct GeneratedStep {
  std::string item;              // "token", "sample", "image"
  int64_t items = 0;             // over all ranks
  std::optional<double> flops;   // that the model needs; nullopt: those of its matrix products
  std::optional<double> bubble;  // BubbleShare; nullopt: not known
};

struct GeneratedJob {
  StepJob job;
  // What was made: "llama-3-8b: 8,030,261,248 parameters, tp 2 × cp 1 × dp 2 × pp 2".
  std::string text;
  nlohmann::ordered_json facts;  // the same
  GeneratedStep step;
};

// Models of one kind, of which GenerateJob makes jobs.
struct ModelKind {
  std::string_view name;
  std::string_view family;                // "language": what kinds are shown together in the help
  std::vector<std::string_view> options;  // ModelOptions that it takes
  // Known models, each with where its numbers are from.
  std::vector<std::pair<std::string_view, std::string_view>> presets;
  // Models of other kinds that `make` knows, too.
  std::vector<std::string_view> others;
  // `model`: a preset, or a file with a model.
  Result<GeneratedJob> (*make)(const std::string& model, const ModelOptions& options,
                               const RunContext& context);
  // Whether `make` would make a job, without making it; nullptr: only `make` tells.
  Fits (*check)(const std::string& model, const ModelOptions& options,
                const RunContext& context) = nullptr;
};

std::span<const ModelKind> ModelKinds();
// nullptr: there is none of this name.
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

// A model that is neither a preset of `kind` nor a file. kUsage.
Error UnknownModel(const ModelKind& kind, const std::string& model);

// What a word stands for; kUsage for one that is not among them.
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

// The same with a table of words; nullopt without a word.
template <typename T>
Result<std::optional<T>> MeaningOf(std::string_view option, const std::optional<std::string>& word,
                                   std::span<const std::pair<std::string_view, T>> words) {
  if (!word) return std::optional<T>();
  ETUDE_ASSIGN_OR_RETURN(const T meaning,
                         MeaningOf(option, word, {words.begin(), words.end()}, words[0].second));
  return std::optional<T>(meaning);
}

// kUsage if one of `unfit` was given, which are for another phase than the one that was asked for.
Status CheckPhaseOptions(const ModelOptions& options, std::span<const std::string_view> unfit,
                         std::string_view phase);

// What a model's file calls an option: "first_bucket" of "--first-bucket", "sequence_parallel" of
// "--no-sequence-parallel".
std::string KeyOfOption(std::string_view option);

// An option that changes nothing of a job, because of others.
struct IdleOption {
  std::string_view name;
  bool idle = false;
  std::string_view why;
};
// Warns of those that were given, and of keys of [plan] in a file that say the same as one.
void WarnOfIdle(const ModelOptions& options, std::span<const IdleOption> rows,
                const RunContext& context, const KeyPlaces& places = {});

// Of `--bucket`; kUsage for what is no size.
Result<Bytes> BucketOf(const ModelOptions& options, Bytes otherwise);
// Of `--first-bucket`.
Result<Bytes> FirstBucketOf(const ModelOptions& options, Bytes otherwise);

}  // namespace etude
