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

// How the help shows an option of models: below which heading, and for which kinds of those there
// ("diffusion: "; "": all).
struct PlaceInHelp {
  std::string heading;
  std::string kinds;
};

// "Language models (llm, moe)", "Recommendation and image models (dlrm, cnn, diffusion)".
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
  add("--dp", "N", "data-parallel replicas");
  add("--tp", "N", "tensor-parallel ranks");
  add("--pp", "N", "pipeline stages");
  add("--cp", "N", "context-parallel ranks");
  add("--ep", "N", "expert-parallel ranks, among the replicas");
  add("--no-sequence-parallel", "",
      "tensor-parallel ranks do not share what lies between the matrices");
  add("--zero", "STAGE",
      "what replicas share: 1 the optimizer's states, 2 gradients too, 3 weights too");
  add("--sequences", "N", "sequences of a micro-batch of a replica");
  add("--micro-batches", "N", "micro-batches of a step");
  add("--schedule", "NAME", "gpipe, 1f1b, interleaved or zero-bubble (default: 1f1b)");
  add("--chunks", "N", "chunks of layers on each stage, interleaved");
  add("--bucket", "BYTES", "gradients that are reduced at once (default: 25MiB)");
  add("--clip", "", "clip gradients by the norm of all of them");
  add("--first-bucket", "BYTES", "the first of these (default: as --bucket)");
  add("--keep-ends", "", "embedding and head stay gathered from forward to backward (ZeRO 3)");
  add("--recompute", "WHAT", "none, selective or full (default: none)");
  add("--attention", "KIND", "fused or unfused (default: fused)");
  add("--context", "HOW",
      "what context-parallel ranks exchange: all-gather, ring or all-to-all (default: all-gather)");
  add("--imbalance", "Z",
      "tokens prefer some experts: the exponent of Zipf's law (default: 0, all alike)");
  add("--seed", "N", "seed of which experts they prefer (default: 0)");
  add("--layers", "N", "layers instead of the model's");
  add("--sequence", "N", "tokens of a sequence instead of the model's");
  add("--batch", "N",
      "samples of a replica, or of its micro-batches (default: dlrm 2048, others 1)");
  add("--phase", "NAME",
      "training (the default); of language models prefill or decode, of diffusion sampling, of "
      "others inference");
  add("--optimizer", "NAME",
      "dlrm: sgd or adagrad, of tables row-wise (default: sgd); cnn, diffusion: sgd with "
      "momentum (default of cnn) or adam");
  add("--replicate-tables", "BYTES", "tables of up to so many are on all ranks");
  add("--split-rows", "BYTES", "other tables of more are split by rows over all ranks");
  add("--split-columns", "N", "columns of a part of a table that one rank has");
  add("--table-cost", "WHAT", "that ranks get equal shares of: bytes or lookups (default: bytes)");
  add("--cached", "N",
      "prefill, decode: earlier tokens of each sequence, in the cache (default: 0, of decode so "
      "many that sequences are whole at the end)");
  add("--tokens", "N", "decode: tokens of each sequence, one after the other");
  add("--cache-type", "TYPE",
      "prefill, decode: type of keys and values in the cache (default: that of the weights)");
  add("--image", "SIDE", "height and width instead of the model's: 224 or 224x320");
  add("--steps", "N", "sampling steps");
  options.Group("");
}

}  // namespace etude
