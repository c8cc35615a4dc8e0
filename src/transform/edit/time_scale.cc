#include "src/transform/edit/time_scale.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/transform/operators/operator_class.h"

namespace etude {
namespace {

constexpr double kLeastFactor = 0.01;
constexpr double kMostFactor = 100;
constexpr std::string_view kHost = "host";
constexpr std::string_view kComm = "comm";

std::optional<double> ParseFactor(std::string_view text, double least) {
  const auto factor = ParseDecimal(text);
  return factor && *factor >= least && *factor <= kMostFactor ? factor : std::nullopt;
}

bool Means(std::string_view what, const ScaledOperator& op) {
  return MeansOperator(what, op.name, op.communicates);
}

}  // namespace

Result<TimeScale> TimeScale::Parse(std::string_view text) {
  TimeScale scale;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view rule = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
    const size_t equals = rule.find('=');
    const auto factor = equals == std::string_view::npos
                            ? std::nullopt
                            : ParseFactor(rule.substr(equals + 1), kLeastFactor);
    const std::string what(rule.substr(0, equals));
    if (!factor) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format(
              "found '{}', expected CLASS=FACTOR such as compute=2, with a factor from {} to {}",
              rule, kLeastFactor, kMostFactor));
    }
    std::vector<std::string> classes(kOperatorClasses.begin(), kOperatorClasses.end());
    classes.emplace_back(kHost);
    if (what.find("::") == std::string::npos && !std::ranges::count(classes, what)) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format(
              "found '{}', expected comm, compute, matrix, host, or an operator such as aten::mm{}",
              what, DidYouMean(what, classes)));
    }
    scale.rules_.emplace_back(what, *factor);
  }
  return scale;
}

Status TimeScale::AddStraggler(std::string_view text) {
  const std::optional<Straggler> straggler = ParseStraggler(text);
  if (!straggler || straggler->factor < 1 || straggler->factor > kMostFactor) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("found '{}', expected RANK:FACTOR such as 1:1.5, with a factor from 1 to {}",
                    text, kMostFactor));
  }
  if (std::ranges::count(stragglers_, straggler->rank, &Straggler::rank) != 0) {
    return MakeError(ErrorCode::kUsage, fmt::format("found rank {} twice", straggler->rank));
  }
  stragglers_.push_back(*straggler);
  return {};
}

double TimeScale::StragglerOf(int64_t rank) const {
  double factor = 1;
  for (const Straggler& straggler : stragglers_) {
    if (straggler.rank == rank) factor = straggler.factor;
  }
  return factor;
}

double TimeScale::Of(const ScaledOperator& op, int64_t rank) const {
  double factor = 1;
  for (const auto& [what, of] : rules_) {
    if (Means(what, op)) factor = of;
  }
  return op.communicates ? factor : factor * StragglerOf(rank);
}

double TimeScale::OfClass(std::string_view name) const {
  double factor = 1;
  for (const auto& [what, of] : rules_) {
    if (what == name) factor = of;
  }
  return factor;
}

double TimeScale::OfHost(int64_t rank) const { return OfClass(kHost) * StragglerOf(rank); }
double TimeScale::OfCommunication() const { return OfClass(kComm); }

double TimeScale::slowdown() const {
  double least = 1;
  for (const auto& [what, factor] : rules_) least = std::min(least, factor);
  return 1 / least;
}

bool TimeScale::is_identity() const {
  return std::ranges::all_of(rules_, [](const auto& rule) { return rule.second == 1; });
}

std::vector<std::string> TimeScale::operators() const {
  std::vector<std::string> names;
  for (const auto& [what, factor] : rules_) {
    if (what.find("::") != std::string::npos) names.push_back(what);
  }
  return names;
}

std::vector<int64_t> TimeScale::stragglers() const {
  std::vector<int64_t> ranks;
  for (const Straggler& straggler : stragglers_) ranks.push_back(straggler.rank);
  return ranks;
}

std::string TimeScale::Text(std::span<const ScaledOperator> step) const {
  std::string text;
  const auto add = [&](std::string_view what, double factor) {
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", what, factor);
  };
  for (const auto& [what, factor] : rules_) {
    add(what, factor);
    const auto means = [&](const ScaledOperator& op) { return Means(what, op); };
    if (what != kHost && std::ranges::none_of(step, means)) text += " (none in this step)";
  }
  for (const Straggler& straggler : stragglers_) {
    add(fmt::format("rank {}", straggler.rank), straggler.factor);
  }
  return text;
}

}  // namespace etude
