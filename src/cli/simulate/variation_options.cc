#include "src/cli/simulate/variation_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/report/tables/simulated/variation_tables.h"

namespace etude {
namespace {

constexpr int64_t kMostRuns = 10'000;
constexpr double kMostNoise = 10;
constexpr int64_t kSimulatedFailures = 10'000;

tl::unexpected<Error> WrongOption(std::string_view option, std::string_view found,
                                  std::string_view expected) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found '{}', expected {}", option, found, expected));
}

Result<StepVariation> VariationOf(const VariationOptions& options) {
  StepVariation variation;
  if (options.noise) {
    variation.noise = *options.noise;
    if (!(variation.noise > 0) || variation.noise > kMostNoise) {
      return WrongOption("--noise", fmt::format("{}", variation.noise), "above 0 and up to 10");
    }
  }
  if (!options.slow_ranks.empty()) {
    const std::string_view text = options.slow_ranks;
    const size_t colon = std::min(text.find(':'), text.size());
    variation.slow_share = ParseDecimal(text.substr(0, colon)).value_or(-1);
    variation.slow_factor =
        ParseDecimal(text.substr(std::min(colon + 1, text.size()))).value_or(-1);
    if (!(variation.slow_share > 0) || variation.slow_share > 1 || !(variation.slow_factor > 0) ||
        variation.slow_factor > 1e6) {
      return WrongOption("--slow-ranks", text,
                         "a probability above 0 and a factor of their times, such as 0.02:1.5");
    }
  }
  variation.runs = options.runs.value_or(variation.runs);
  variation.seed = static_cast<uint64_t>(options.seed.value_or(1));
  return variation;
}

// Returns seconds.
Result<double> SecondsOf(std::string_view option, const std::string& text, bool may_be_zero) {
  const auto time = ParseTime(text);
  if (!time || time->count < 0 || (time->count == 0 && !may_be_zero)) {
    return WrongOption(option, text, "a time, such as 30s, 5min or 50000h");
  }
  return static_cast<double>(time->count) * 1e-9;
}

Result<FailureModel> FailuresOf(const VariationOptions& options) {
  if (options.checkpoint.empty() || options.restart.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "--mtbf requires --checkpoint and --restart, the times that they take");
  }
  FailureModel model;
  ETUDE_ASSIGN_OR_RETURN(model.mtbf, SecondsOf("--mtbf", options.mtbf, false));
  ETUDE_ASSIGN_OR_RETURN(model.checkpoint, SecondsOf("--checkpoint", options.checkpoint, true));
  ETUDE_ASSIGN_OR_RETURN(model.restart, SecondsOf("--restart", options.restart, true));
  if (!options.interval.empty()) {
    ETUDE_ASSIGN_OR_RETURN(model.interval,
                           SecondsOf("--checkpoint-interval", options.interval, false));
  } else if (model.checkpoint == 0) {
    return MakeError(ErrorCode::kUsage,
                     "--checkpoint 0 requires --checkpoint-interval: the best one would be 0");
  }
  return model;
}

}  // namespace

void DeclareVariation(VariationOptions& variation, Options& options) {
  options.Value("--noise", &variation.noise, "S",
                "also simulate steps in which each computation's time has a random factor with "
                "mean 1 and this standard deviation, such as 0.05");
  options.Value("--slow-ranks", &variation.slow_ranks, "P:FACTOR",
                "also simulate steps in which each rank is slower by FACTOR with probability P, "
                "such as 0.02:1.5");
  options.Value("--runs", &variation.runs, "N",
                "number of steps with --noise or --slow-ranks (default: 20)",
                {.least = 1, .most = kMostRuns});
  options.Value("--seed", &variation.seed, "N", "seed of random numbers (default: 1)",
                {.least = 0, .most = INT64_MAX});
  options.Value("--mtbf", &variation.mtbf, "TIME",
                "mean time between failures of one rank, such as 50000h: what they cost a long "
                "job");
  options.Value("--checkpoint", &variation.checkpoint, "TIME",
                "--mtbf: time to write a checkpoint");
  options.Value("--restart", &variation.restart, "TIME",
                "--mtbf: time from a failure until the job computes again");
  options.Value("--checkpoint-interval", &variation.interval, "TIME",
                "--mtbf: computation between checkpoints (default: the best)");
}

Status CheckVariation(const VariationOptions& variation, const std::string& wanted) {
  if (!variation.varies() && variation.runs) {
    return MakeError(ErrorCode::kUsage, "--runs requires --noise or --slow-ranks");
  }
  if (!variation.varies() && !variation.fails() && variation.seed) {
    return MakeError(ErrorCode::kUsage, "--seed requires --noise, --slow-ranks or --mtbf");
  }
  if (!variation.fails() &&
      !(variation.checkpoint.empty() && variation.restart.empty() && variation.interval.empty())) {
    return MakeError(ErrorCode::kUsage,
                     "--checkpoint, --restart and --checkpoint-interval require --mtbf");
  }
  if (wanted == kVariationTable && !variation.varies()) {
    return MakeError(ErrorCode::kUsage,
                     "--table: table 'variation' requires --noise or --slow-ranks");
  }
  if (wanted == kFailureTable && !variation.fails()) {
    return MakeError(ErrorCode::kUsage, "--table: table 'failures' requires --mtbf");
  }
  const Result<StepVariation> varies = VariationOf(variation);
  if (!varies) return tl::unexpected<Error>(varies.error());
  if (!variation.fails()) return {};
  const Result<FailureModel> fails = FailuresOf(variation);
  return fails ? Status() : tl::unexpected<Error>(fails.error());
}

Result<std::vector<Table>> VariationTables(const VariationOptions& options,
                                           const SimMachine& machine, const SimWorkload& workload,
                                           int64_t step, const RunContext& context) {
  std::vector<Table> tables;
  ETUDE_ASSIGN_OR_RETURN(const StepVariation variation, VariationOf(options));
  if (variation.any()) {
    ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                           SimulateVaried(machine, workload, variation, context));
    if (!steps.empty()) tables.push_back(VariationTable(variation, step, std::move(steps)));
  }
  if (options.fails()) {
    ETUDE_ASSIGN_OR_RETURN(const FailureModel model, FailuresOf(options));
    tables.push_back(
        FailureTable(machine.npus(), GoodputOf(model, machine.npus()),
                     SimulatedGoodput(model, machine.npus(), kSimulatedFailures, variation.seed)));
  }
  return tables;
}

}  // namespace etude
