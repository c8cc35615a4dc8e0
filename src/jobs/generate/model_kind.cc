#include "src/jobs/generate/model_kind.h"

#include <algorithm>
#include <utility>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

Result<Bytes> SizeOf(std::string_view option, const std::optional<std::string>& size,
                     Bytes otherwise) {
  if (!size) return otherwise;
  const auto bucket = ParseBytesWithUnit(*size);
  if (bucket) return *bucket;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("{}: found '{}', expected a size with a unit, such as 25MiB", option, *size));
}

}  // namespace

std::string KeyOfOption(std::string_view option) {
  constexpr std::string_view kNo = "--no-";
  std::string key(option.substr(option.starts_with(kNo) ? kNo.size() : 2));
  std::ranges::replace(key, '-', '_');
  return key;
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

Result<std::string> TextOfModel(const std::string& model, const ModelOptions& options,
                                const Limits& limits) {
  if (options.model_text) return *options.model_text;
  return ReadWholeFile(model, limits);
}

Error UnknownModel(const ModelKind& kind, const std::string& model) {
  std::vector<std::string> names;
  for (const auto& [name, source] : kind.presets) names.emplace_back(name);
  const std::string hint = DidYouMean(model, names);
  return Error{ErrorCode::kUsage,
               fmt::format("unknown model '{}'{}", model,
                           hint.empty() ? fmt::format("; expected {}, or a .toml file",
                                                      fmt::join(names, ", "))
                                        : hint)};
}

Status CheckPhaseOptions(const ModelOptions& options, std::span<const std::string_view> unfit,
                         std::string_view phase) {
  for (const std::string_view option : options.Given()) {
    if (std::ranges::find(unfit, option) == unfit.end()) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("generate: {} requires --phase {}", option, phase));
  }
  return {};
}

void WarnOfIdle(const ModelOptions& options, std::span<const IdleOption> rows,
                const RunContext& context, const KeyPlaces& places) {
  for (const IdleOption& row : rows) {
    if (!row.idle) continue;
    if (options.Has(row.name)) {
      context.Warn(fmt::format("{} has no effect: {}", row.name, row.why));
      continue;
    }
    const std::string key = KeyOfOption(row.name);
    if (const auto found = places.find("plan." + key); found != places.end()) {
      context.Warn(fmt::format("{}: {} has no effect: {}", found->second, key, row.why));
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
