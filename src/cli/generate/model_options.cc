#include "src/cli/generate/model_options.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "src/jobs/generate/model_kind.h"

namespace etude {
namespace {

// Place of a model's option in the help: the heading, and the kinds of models that take it
// ("diffusion: ", "": all kinds of the heading).
struct PlaceInHelp {
  std::string heading;
  std::string kinds;
};

// Returns the place of an option, for example below "Language models (llm, moe)".
PlaceInHelp PlaceOf(std::string_view option) {
  std::vector<std::string_view> takers;
  std::vector<std::string_view> families;
  for (const ModelKind& kind : ModelKinds()) {
    if (std::ranges::find(kind.options, option) == kind.options.end()) continue;
    takers.push_back(kind.name);
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
  const auto add = [&](std::string_view name, std::string_view what, std::string_view help) {
    PlaceInHelp found = PlaceOf(name);
    options.Group(found.heading);
    DeclareOption(request, name, what, found.kinds.append(help), options);
  };
  add("--dp", "N", "number of data-parallel replicas");
  add("--tp", "N", "number of tensor-parallel ranks");
  add("--pp", "N", "number of pipeline stages");
  add("--cp", "N", "number of context-parallel ranks");
  add("--ep", "N", "number of expert-parallel ranks, a divisor of the data-parallel replicas");
  add("--no-sequence-parallel", "",
      "disable sequence parallelism: tensor-parallel ranks all process every token between the "
      "matrix products");
  add("--zero", "STAGE",
      "shard among replicas: 1 optimizer states, 2 also gradients, 3 also weights");
  add("--sequences", "N", "number of sequences in a micro-batch of a replica");
  add("--micro-batches", "N", "number of micro-batches in a step");
  add("--schedule", "NAME",
      "pipeline schedule: gpipe, 1f1b, interleaved or zero-bubble (default: 1f1b)");
  add("--chunks", "N", "layer chunks per stage, for the interleaved schedule");
  add("--bucket", "BYTES", "size of a gradient bucket, which is reduced at once (default: 25MiB)");
  add("--clip", "", "clip gradients by their global norm");
  add("--first-bucket", "BYTES", "size of the first gradient bucket (default: as --bucket)");
  add("--keep-ends", "", "keep embedding and head gathered from forward to backward (ZeRO 3)");
  add("--recompute", "WHAT", "activation recomputation: none, selective or full (default: none)");
  add("--attention", "KIND", "attention kernels: fused or unfused (default: fused)");
  add("--context", "HOW",
      "exchange among context-parallel ranks: all-gather, ring or all-to-all (default: "
      "all-gather)");
  add("--imbalance", "Z",
      "exponent of Zipf's law for the choice of experts (default: 0, all equally likely)");
  add("--seed", "N", "seed for the preferred experts (default: 0)");
  add("--layers", "N", "number of layers (default: the model's)");
  add("--sequence", "N", "number of tokens in a sequence (default: the model's)");
  add("--batch", "N",
      "number of samples per replica, or per micro-batch (default: dlrm 2048, others 1)");
  add("--phase", "NAME",
      "training (default); language models: prefill or decode; diffusion: sampling; others: "
      "inference");
  add("--optimizer", "NAME",
      "dlrm: sgd or adagrad, row-wise for tables (default: sgd); cnn, diffusion: sgd with momentum "
      "(default for cnn) or adam");
  add("--replicate-tables", "BYTES", "replicate tables of up to BYTES on all ranks");
  add("--split-rows", "BYTES", "split other tables of more than BYTES by rows over all ranks");
  add("--split-columns", "N", "split tables by columns, N columns per part");
  add("--table-cost", "WHAT",
      "distribute tables so that ranks have equal bytes or lookups (default: bytes)");
  add("--cached", "N",
      "prefill, decode: number of cached tokens per sequence at the start (default: prefill 0; "
      "decode as many as complete the sequence)");
  add("--tokens", "N", "decode: number of tokens to generate per sequence");
  add("--cache-type", "TYPE",
      "prefill, decode: dtype of cached keys and values (default: that of the weights)");
  add("--image", "SIDE", "image size, such as 224 or 224x320 (default: the model's)");
  add("--steps", "N", "number of sampling steps");
  options.Group("");
}

}  // namespace etude
