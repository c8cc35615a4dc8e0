#include "src/cli/generate/model_kind.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr Bounds kFromOne{.least = 1, .most = int64_t{1} << 24};

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

Result<Bytes> SizeOf(std::string_view option, const std::optional<std::string>& size,
                     Bytes otherwise) {
  if (!size) return otherwise;
  const auto bucket = ParseBytes(*size);
  if (bucket) return *bucket;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found '{}', expected bytes, as in 25MiB", option, *size));
}

}  // namespace

std::string KeyOfOption(std::string_view option) {
  constexpr std::string_view kNo = "--no-";
  std::string key(option.substr(option.starts_with(kNo) ? kNo.size() : 2));
  std::ranges::replace(key, '-', '_');
  return key;
}

void ModelOptions::Declare(Options& options) {
  // What the help says of it, below its heading.
  const auto place = [&](std::string_view name, std::string_view help) {
    PlaceInHelp found = PlaceOf(name);
    options.Group(found.heading);
    return found.kinds.append(help);
  };
  const auto number = [&](const char* name, std::optional<int64_t>* value, const char* what,
                          std::string_view help, Bounds bounds = kFromOne) {
    options.Value(name, value, what, place(name, help), bounds);
    declared_.push_back({name, [value] { return value->has_value(); }});
  };
  const auto word = [&](const char* name, std::optional<std::string>* value, const char* what,
                        std::string_view help) {
    options.Value(name, value, what, place(name, help));
    declared_.push_back({name, [value] { return value->has_value(); }});
  };
  const auto flag = [&](const char* name, bool* value, std::string_view help) {
    options.Flag(name, value, place(name, help));
    declared_.push_back({name, [value] { return *value; }});
  };
  number("--dp", &plan.data, "N", "data-parallel replicas");
  number("--tp", &plan.tensor, "N", "tensor-parallel ranks");
  number("--pp", &plan.stages, "N", "pipeline stages");
  number("--cp", &plan.context, "N", "context-parallel ranks");
  number("--ep", &plan.expert, "N", "expert-parallel ranks, among the replicas");
  flag("--no-sequence-parallel", &whole_tokens,
       "tensor-parallel ranks do not share what lies between the matrices");
  number("--zero", &plan.zero, "STAGE",
         "what replicas share: 1 the optimizer's states, 2 gradients too, 3 weights too",
         {.least = 0, .most = 3});
  number("--sequences", &plan.sequences, "N", "sequences of a micro-batch of a replica");
  number("--micro-batches", &plan.micro_batches, "N", "micro-batches of a step");
  word("--schedule", &schedule, "NAME", "gpipe, 1f1b, interleaved or zero-bubble (default: 1f1b)");
  number("--chunks", &plan.chunks, "N", "chunks of layers on each stage, interleaved");
  word("--bucket", &bucket, "BYTES", "gradients that are reduced at once (default: 25MiB)");
  flag("--clip", &clip, "clip gradients by the norm of all of them");
  word("--first-bucket", &first_bucket, "BYTES", "the first of these (default: as --bucket)");
  flag("--keep-ends", &keep_ends,
       "embedding and head stay gathered from forward to backward (ZeRO 3)");
  word("--recompute", &recompute, "WHAT", "none, selective or full (default: none)");
  word("--attention", &attention, "KIND", "fused or unfused (default: fused)");
  word(
      "--context", &context_kind, "HOW",
      "what context-parallel ranks exchange: all-gather, ring or all-to-all (default: all-gather)");
  options.Value(
      "--imbalance", &imbalance, "Z",
      place("--imbalance",
            "tokens prefer some experts: the exponent of Zipf's law (default: 0, all alike)"));
  declared_.push_back({"--imbalance", [this] { return imbalance.has_value(); }});
  number("--seed", &seed, "N", "seed of which experts they prefer (default: 0)",
         {.least = 0, .most = int64_t{1} << 24});
  number("--layers", &layers, "N", "layers instead of the model's");
  number("--sequence", &sequence, "N", "tokens of a sequence instead of the model's");
  number("--batch", &batch, "N",
         "samples of a replica, or of its micro-batches (default: dlrm 2048, others 1)");
  word("--phase", &phase, "NAME",
       "training (the default); of language models prefill or decode, of diffusion sampling, of "
       "others inference");
  word("--optimizer", &optimizer, "NAME",
       "dlrm: sgd or adagrad, of tables row-wise (default: sgd); cnn, diffusion: sgd with "
       "momentum (default of cnn) or adam");
  word("--replicate-tables", &replicate_tables, "BYTES",
       "tables of up to so many are on all ranks");
  word("--split-rows", &split_rows, "BYTES",
       "other tables of more are split by rows over all ranks");
  number("--split-columns", &split_columns, "N", "columns of a part of a table that one rank has");
  word("--table-cost", &table_cost, "WHAT",
       "that ranks get equal shares of: bytes or lookups (default: bytes)");
  number("--cached", &plan.cached, "N",
         "prefill, decode: earlier tokens of each sequence, in the cache (default: 0, of decode so "
         "many that sequences are whole at the end)",
         {.least = 0, .most = int64_t{1} << 24});
  number("--tokens", &plan.tokens, "N", "decode: tokens of each sequence, one after the other");
  word("--cache-type", &cache_type, "TYPE",
       "prefill, decode: type of keys and values in the cache (default: that of the weights)");
  word("--image", &image, "SIDE", "height and width instead of the model's: 224 or 224x320");
  number("--steps", &steps, "N", "sampling steps");
  options.Group("");
}

std::vector<std::string_view> ModelOptions::Given() const {
  std::vector<std::string_view> names;
  for (const Declared& option : declared_) {
    if (option.given()) names.push_back(option.name);
  }
  return names;
}

bool ModelOptions::Has(std::string_view option) const {
  const auto found = std::ranges::find(declared_, option, &Declared::name);
  return found != declared_.end() && found->given();
}

std::span<const ModelKind> ModelKinds() {
  static const std::vector<ModelKind> kinds = {LlmKind(), MoeKind(), DlrmKind(), CnnKind(),
                                               DiffusionKind()};
  return kinds;
}

const ModelKind* FindModelKind(std::string_view name) {
  const std::span<const ModelKind> kinds = ModelKinds();
  const auto found = std::ranges::find(kinds, name, &ModelKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

Error UnknownModel(const ModelKind& kind, const std::string& model) {
  std::vector<std::string> names;
  for (const auto& [name, source] : kind.presets) names.emplace_back(name);
  const std::string hint = DidYouMean(model, names);
  return Error{ErrorCode::kUsage,
               fmt::format("unknown model '{}'{}", model,
                           hint.empty() ? fmt::format("; there are {}, and files that end in .toml",
                                                      fmt::join(names, ", "))
                                        : hint)};
}

Status CheckPhaseOptions(const ModelOptions& options, std::span<const std::string_view> unfit,
                         std::string_view phase) {
  for (const std::string_view option : options.Given()) {
    if (std::ranges::find(unfit, option) == unfit.end()) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("generate: {} is for --phase {}", option, phase));
  }
  return {};
}

void WarnOfIdle(const ModelOptions& options, std::span<const IdleOption> rows,
                const RunContext& context, const KeyPlaces& places) {
  for (const IdleOption& row : rows) {
    if (!row.idle) continue;
    if (options.Has(row.name)) {
      context.Warn(fmt::format("{}: does nothing, {}", row.name, row.why));
      continue;
    }
    const std::string key = KeyOfOption(row.name);
    if (const auto found = places.find("plan." + key); found != places.end()) {
      context.Warn(fmt::format("{}: {}: does nothing, {}", found->second, key, row.why));
    }
  }
}

Result<Bytes> BucketOf(const ModelOptions& options, Bytes otherwise) {
  return SizeOf("--bucket", options.bucket, otherwise);
}

Result<Bytes> FirstBucketOf(const ModelOptions& options, Bytes otherwise) {
  return SizeOf("--first-bucket", options.first_bucket, otherwise);
}

}  // namespace etude
