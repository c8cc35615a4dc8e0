#include "src/jobs/generate/generate_request.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr Bounds kFromOne{.least = 1, .most = int64_t{1} << 24};
constexpr Bounds kFromZero{.least = 0, .most = int64_t{1} << 24};

// An option of models: its name, and the member with its value.
struct ModelOption {
  using Member =
      std::variant<bool ModelOptions::*, std::optional<int64_t> ModelOptions::*,
                   std::optional<int64_t> PlanSettings::*, std::optional<double> ModelOptions::*,
                   std::optional<std::string> ModelOptions::*>;
  std::string_view name;
  Member member;
  Bounds bounds = kFromOne;
};

constexpr auto kModelOptions = std::to_array<ModelOption>({
    {"--dp", &PlanSettings::data},
    {"--tp", &PlanSettings::tensor},
    {"--pp", &PlanSettings::stages},
    {"--cp", &PlanSettings::context},
    {"--ep", &PlanSettings::expert},
    {"--no-sequence-parallel", &ModelOptions::whole_tokens},
    {"--zero", &PlanSettings::zero, {.least = 0, .most = 3}},
    {"--sequences", &PlanSettings::sequences},
    {"--micro-batches", &PlanSettings::micro_batches},
    {"--schedule", &ModelOptions::schedule},
    {"--chunks", &PlanSettings::chunks},
    {"--bucket", &ModelOptions::bucket},
    {"--clip", &ModelOptions::clip},
    {"--first-bucket", &ModelOptions::first_bucket},
    {"--keep-ends", &ModelOptions::keep_ends},
    {"--recompute", &ModelOptions::recompute},
    {"--attention", &ModelOptions::attention},
    {"--context", &ModelOptions::context_kind},
    {"--imbalance", &ModelOptions::imbalance},
    {"--seed", &ModelOptions::seed, kFromZero},
    {"--layers", &ModelOptions::layers},
    {"--hidden", &ModelOptions::hidden},
    {"--heads", &ModelOptions::heads},
    {"--kv-heads", &ModelOptions::kv_heads},
    {"--head-size", &ModelOptions::head_size},
    {"--ffn", &ModelOptions::ffn},
    {"--vocab", &ModelOptions::vocabulary},
    {"--experts", &ModelOptions::experts},
    {"--top-k", &ModelOptions::top_k},
    {"--expert-ffn", &ModelOptions::expert_ffn},
    {"--sequence", &ModelOptions::sequence},
    {"--batch", &ModelOptions::batch},
    {"--phase", &ModelOptions::phase},
    {"--optimizer", &ModelOptions::optimizer},
    {"--replicate-tables", &ModelOptions::replicate_tables},
    {"--split-rows", &ModelOptions::split_rows},
    {"--split-columns", &ModelOptions::split_columns},
    {"--table-cost", &ModelOptions::table_cost},
    {"--cached", &PlanSettings::cached, kFromZero},
    {"--tokens", &PlanSettings::tokens},
    {"--cache-type", &ModelOptions::cache_type},
    {"--image", &ModelOptions::image},
    {"--steps", &ModelOptions::steps},
});

// Calls `fn` with a reference to the value of `option`.
template <typename Options, typename Fn>
auto WithValue(const ModelOption& option, Options& options, Fn fn) {
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), PlanSettings&>) {
          return fn(options.plan.*member);
        } else {
          return fn(options.*member);
        }
      },
      option.member);
}

bool IsGiven(const ModelOption& option, const ModelOptions& options) {
  return WithValue(option, options, [](const auto& value) { return static_cast<bool>(value); });
}

// Sets the option to `text`. Options without a value are set to given.
Status Take(const GenerateOption& option, const std::string& text) {
  return std::visit(
      [&](auto* target) -> Status {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          *target = true;
        } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
          *target = text;
        } else if constexpr (std::is_same_v<T, std::optional<double>>) {
          ETUDE_ASSIGN_OR_RETURN(*target, ParseAbove(text));
        } else {
          ETUDE_ASSIGN_OR_RETURN(*target, ParseWithin(text, option.bounds));
        }
        return {};
      },
      option.target);
}

}  // namespace

std::vector<std::string_view> ModelOptions::Given() const {
  std::vector<std::string_view> names;
  for (const ModelOption& option : kModelOptions) {
    if (IsGiven(option, *this)) names.push_back(option.name);
  }
  return names;
}

bool ModelOptions::Has(std::string_view option) const {
  const auto* const found = std::ranges::find(kModelOptions, option, &ModelOption::name);
  return found != kModelOptions.end() && IsGiven(*found, *this);
}

std::vector<GenerateOption> OptionsOf(GenerateRequest& request) {
  std::vector<GenerateOption> options = {
      {"--ranks", &request.ranks, {.least = 1, .most = 1 << 20}},
      {"--count", &request.count, {.least = 1, .most = 100'000'000}},
      {"--size", &request.size, {}},
      {"--duration", &request.duration, {}},
      {"--group-size", &request.group_size, {.least = 0}},
      {"--native", &request.native, {}},
      {"--device", &request.device, {}},
      {"--measured", &request.measured, {}},
      {"--memory", &request.memory, {}},
  };
  for (const ModelOption& option : kModelOptions) {
    WithValue(option, request.options, [&](auto& value) {
      options.push_back({option.name, &value, option.bounds});
    });
  }
  return options;
}

Result<GenerateRequest> ParseGenerateWords(std::span<const std::string> words) {
  const auto wrong = [](std::string_view option, const std::string& message) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: {}", option, message));
  };
  GenerateRequest request;
  if (!words.empty()) request.what = words[0];
  if (words.size() > 1) request.model = words[1];
  const std::vector<GenerateOption> options = OptionsOf(request);
  std::vector<const std::string*> values(options.size());
  for (size_t i = 2; i < words.size(); ++i) {
    const auto found = std::ranges::find(options, words[i], &GenerateOption::name);
    if (found == options.end()) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("{} '{}'",
                      words[i].starts_with("-") ? "unknown option" : "unexpected argument",
                      words[i]));
    }
    const bool has_value = !std::holds_alternative<bool*>(found->target);
    if (has_value && i + 1 == words.size()) {
      return wrong(found->name, "found nothing, expected a value");
    }
    values[static_cast<size_t>(found - options.begin())] = &words[has_value ? ++i : i];
  }
  for (size_t i = 0; i < options.size(); ++i) {
    if (values[i] == nullptr) continue;
    const Status taken = Take(options[i], *values[i]);
    if (!taken) return wrong(options[i].name, taken.error().message);
  }
  return request;
}

}  // namespace etude
