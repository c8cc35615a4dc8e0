#include "src/cli/generate/model_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/jobs/generate/model_kind.h"

namespace etude {
namespace {

// Place of a model's option in the help: the heading, and the kinds of models that take it
// ("diffusion: ", "": all kinds of the heading).
struct PlaceInHelp {
  std::string heading;
  std::string kinds;
};

// Returns the kinds of models that take an option.
std::vector<std::string_view> TakersOf(std::string_view option) {
  std::vector<std::string_view> takers;
  for (const ModelKind& kind : ModelKinds()) {
    const bool takes = std::ranges::find(kind.options, option) != kind.options.end();
    if (takes) takers.push_back(kind.name);
  }
  return takers;
}

// Returns the place of an option, for example below "Language models (llm, moe)".
PlaceInHelp PlaceOf(std::string_view option) {
  const std::vector<std::string_view> takers = TakersOf(option);
  std::vector<std::string_view> families;
  for (const ModelKind& kind : ModelKinds()) {
    if (std::ranges::find(takers, kind.name) == takers.end()) continue;
    if (std::ranges::find(families, kind.family) == families.end()) families.push_back(kind.family);
  }
  std::vector<std::string_view> shown;
  for (const ModelKind& kind : ModelKinds()) {
    if (std::ranges::find(families, kind.family) != families.end()) shown.push_back(kind.name);
  }
  std::string heading(kAllModels);
  if (shown.size() != ModelKinds().size()) {
    heading = fmt::format("{} models ({})", fmt::join(families, " and "), fmt::join(shown, ", "));
    heading.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(heading.front())));
  }
  return {.heading = std::move(heading),
          .kinds = takers == shown ? "" : fmt::format("{}: ", fmt::join(takers, ", "))};
}

// Removes "(default: …)": the default of an edit is the value of the job.
std::string WithoutDefaults(std::string_view help) {
  std::string text(help);
  for (size_t at = 0; (at = text.find(" (default")) != std::string::npos;) {
    text.erase(at, text.find(')', at) + 1 - at);
  }
  return text;
}

// An option of models: its name, placeholder ("" for flags) and help.
struct ModelOptionHelp {
  std::string_view name;
  std::string_view what;
  std::string_view help;
};

constexpr auto kModelOptionHelps = std::to_array<ModelOptionHelp>({
    {"--dp", "N", "number of data-parallel replicas"},
    {"--tp", "N", "number of tensor-parallel ranks"},
    {"--pp", "N", "number of pipeline stages"},
    {"--cp", "N", "number of context-parallel ranks"},
    {"--ep", "N", "number of expert-parallel ranks, a divisor of the data-parallel replicas"},
    {"--no-sequence-parallel", "",
     "disable sequence parallelism: tensor-parallel ranks all process every token between the "
     "matrix products"},
    {"--zero", "STAGE",
     "shard among replicas: 1 optimizer states, 2 also gradients, 3 also weights"},
    {"--sequences", "N", "number of sequences in a micro-batch of a replica"},
    {"--micro-batches", "N", "number of micro-batches in a step"},
    {"--schedule", "NAME",
     "pipeline schedule: gpipe, 1f1b, interleaved or zero-bubble (default: 1f1b)"},
    {"--chunks", "N", "layer chunks per stage, for the interleaved schedule"},
    {"--bucket", "SIZE", "size of a gradient bucket, which is reduced at once (default: 25MiB)"},
    {"--clip", "", "clip gradients by their global norm"},
    {"--first-bucket", "SIZE", "size of the first gradient bucket (default: as --bucket)"},
    {"--keep-ends", "", "keep embedding and head gathered from forward to backward (ZeRO 3)"},
    {"--recompute", "WHAT", "activation recomputation: none, selective or full (default: none)"},
    {"--attention", "KIND", "attention kernels: fused or unfused (default: fused)"},
    {"--context", "HOW",
     "exchange among context-parallel ranks: all-gather, ring or all-to-all (default: "
     "all-gather)"},
    {"--imbalance", "Z",
     "exponent of Zipf's law for the choice of experts (default: 0, all equally likely)"},
    {"--seed", "N", "seed for the preferred experts (default: 0)"},
    {"--layers", "N", "number of layers (default: the model's)"},
    {"--hidden", "N", "hidden units (default: the model's)"},
    {"--heads", "N", "attention heads (default: the model's)"},
    {"--kv-heads", "N",
     "heads of keys and values (default: the model's; as many as --heads if the model has equally "
     "many)"},
    {"--head-size", "N",
     "size of a head (default: the model's; hidden units divided by heads if that is the model's)"},
    {"--ffn", "N", "units of the feed-forward part without experts (default: the model's)"},
    {"--vocab", "N", "size of the vocabulary (default: the model's)"},
    {"--experts", "N", "number of experts (default: the model's)"},
    {"--top-k", "N", "number of experts per token (default: the model's)"},
    {"--expert-ffn", "N", "units of an expert (default: the model's)"},
    {"--sequence", "N", "number of tokens in a sequence (default: the model's)"},
    {"--batch", "N",
     "number of samples per replica, or per micro-batch (default: dlrm 2048, others 1)"},
    {"--phase", "NAME",
     "training (default); language models: prefill or decode; diffusion: sampling; others: "
     "inference"},
    {"--optimizer", "NAME",
     "dlrm: sgd or adagrad, row-wise for tables (default: sgd); cnn, diffusion: sgd with momentum "
     "(default for cnn) or adam"},
    {"--replicate-tables", "BYTES", "replicate tables of up to BYTES on all ranks"},
    {"--split-rows", "BYTES", "split other tables of more than BYTES by rows over all ranks"},
    {"--split-columns", "N", "split tables by columns, N columns per part"},
    {"--table-cost", "WHAT",
     "distribute tables so that ranks have equal bytes or lookups (default: bytes)"},
    {"--cached", "N",
     "prefill, decode: number of cached tokens per sequence at the start (default: prefill 0; "
     "decode as many as complete the sequence)"},
    {"--tokens", "N", "decode: number of tokens to generate per sequence"},
    {"--cache-type", "TYPE",
     "prefill, decode: dtype of cached keys and values (default: that of the weights)"},
    {"--image", "SIDE", "image size, such as 224 or 224x320 (default: the model's)"},
    {"--steps", "N", "number of sampling steps"},
});

}  // namespace

void DeclareOption(const std::vector<GenerateOption>& request, std::string_view name,
                   std::string_view what, std::string_view help, Options& options) {
  const GenerateOption& option = *std::ranges::find(request, name, &GenerateOption::name);
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          options.Flag(name, target, help);
        } else if constexpr (std::is_same_v<T, int64_t> ||
                             std::is_same_v<T, std::optional<int64_t>>) {
          options.Value(name, target, what, help, option.bounds);
        } else {
          options.Value(name, target, what, help);
        }
      },
      option.target);
}

void DeclareModelOptions(const std::vector<GenerateOption>& request, Options& options) {
  for (const ModelOptionHelp& row : kModelOptionHelps) {
    PlaceInHelp found = PlaceOf(row.name);
    options.Group(found.heading);
    DeclareOption(request, row.name, row.what, found.kinds.append(row.help), options);
  }
  options.Group("");
}

void DeclarePlanEdits(const std::vector<GenerateOption>& request,
                      std::span<const std::string_view> others, Options& options) {
  for (const ModelOptionHelp& row : kModelOptionHelps) {
    if (std::ranges::find(others, row.name) != others.end()) continue;
    const std::vector<std::string_view> takers = TakersOf(row.name);
    const std::string help = WithoutDefaults(row.help);
    DeclareOption(request, row.name, row.what,
                  takers.size() == ModelKinds().size()
                      ? help
                      : fmt::format("{}: {}", fmt::join(takers, ", "), help),
                  options);
  }
}

}  // namespace etude
