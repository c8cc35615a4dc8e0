#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/result.h"
#include "src/base/text/bounded_number.h"
#include "src/synth/plan_settings.h"

namespace etude {

// Settings for a model's job, in addition to those of all generated jobs. Missing settings have the
// defaults of the kind of model (docs/commands/generate.md).
struct ModelOptions {
  PlanSettings plan;  // numbers; dlrm, cnn and diffusion use some too
  bool whole_tokens = false;
  std::optional<std::string> schedule;
  std::optional<std::string> bucket;
  bool clip = false;
  std::optional<std::string> first_bucket;
  bool keep_ends = false;
  std::optional<std::string> recompute;
  std::optional<std::string> attention;
  std::optional<std::string> context_kind;
  std::optional<double> imbalance;
  std::optional<int64_t> seed;
  std::optional<int64_t> layers;
  std::optional<int64_t> hidden;
  std::optional<int64_t> heads;
  std::optional<int64_t> kv_heads;
  std::optional<int64_t> head_size;
  std::optional<int64_t> ffn;
  std::optional<int64_t> vocabulary;
  std::optional<int64_t> experts;
  std::optional<int64_t> top_k;
  std::optional<int64_t> expert_ffn;
  std::optional<int64_t> sequence;
  std::optional<int64_t> batch;
  std::optional<std::string> phase;
  std::optional<std::string> optimizer;
  std::optional<std::string> replicate_tables;
  std::optional<std::string> split_rows;
  std::optional<int64_t> split_columns;
  std::optional<std::string> table_cost;
  std::optional<std::string> cache_type;
  std::optional<std::string> image;
  std::optional<int64_t> steps;
  std::optional<std::string> model_text;  // of the model's file; nullopt: it is read

  // Returns the names of the given options: "--dp".
  std::vector<std::string_view> Given() const;
  bool Has(std::string_view option) const;
};

// A request for a job: the words of `etude generate`.
struct GenerateRequest {
  std::string what;       // "microbench", "text", or a kind of models: "llm"
  std::string model;      // a preset or a file in TOML; microbench: a pattern; text: a file
  std::string output;     // PREFIX of PREFIX.0.et …; classes: a folder
  std::string to = "et";  // or "classes"
  std::optional<int64_t> ranks;
  // For microbench and text: repetitions, one after the other.
  int64_t count = 1;
  // For microbench:
  std::optional<std::string> size;      // "64MiB"
  std::optional<std::string> duration;  // "50us"
  int64_t group_size = 0;               // 0: collectives use all ranks
  bool native = false;
  // For models:
  std::optional<std::string> device;    // a preset or a file in TOML
  std::optional<std::string> measured;  // a trace, or a table that ends in .csv
  bool memory = false;
  ModelOptions options;
  std::optional<std::string> device_text;    // of the device's file; nullopt: it is read
  std::optional<std::string> measured_text;  // table of measured times; nullopt: it is read
};

// An option of `etude generate`: its name, and the place of its value.
struct GenerateOption {
  using Target = std::variant<bool*, int64_t*, std::optional<int64_t>*, std::optional<double>*,
                              std::optional<std::string>*>;
  std::string_view name;  // "--dp"
  Target target;
  Bounds bounds;  // for whole numbers
};

// Returns all options of `request`, except output and to, in the order of the help. `request` must
// outlive them.
std::vector<GenerateOption> OptionsOf(GenerateRequest& request);

// Parses words into a request: what and model, then options, each followed by its value. Returns
// kUsage with the option for unknown options and invalid values.
Result<GenerateRequest> ParseGenerateWords(std::span<const std::string> words);

}  // namespace etude
