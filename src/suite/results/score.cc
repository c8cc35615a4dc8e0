#include "src/suite/results/score.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/folder_names.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/olympic_mean.h"

namespace etude::suite {
namespace {

std::optional<double> MeanOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> VariationOf(const std::vector<double>& values) {
  const std::optional<double> mean = MeanOf(values);
  if (values.size() < 2 || *mean == 0) return std::nullopt;
  double squares = 0;
  for (const double value : values) squares += (value - *mean) * (value - *mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / *mean;
}

}  // namespace

Score ScoreOf(std::vector<RunRecord> runs, std::span<const ConvergenceReference> references) {
  Score score;
  score.runs = std::move(runs);
  if (score.runs.empty()) return score;
  const RunRecord& first = score.runs.front();
  score.task = first.task;
  score.target = first.target;
  score.baseline = first.baseline;
  if (first.mode != "steps") score.convergence = JudgeConvergence(score.runs, references);

  RunFigures times;
  std::vector<double> epochs;
  std::vector<double> qualities;
  for (const RunRecord& run : score.runs) {
    if (run.quality && !std::isnan(*run.quality)) qualities.push_back(*run.quality);
    if (!run.reached) {
      ++times.missed;
      continue;
    }
    times.values.push_back(run.seconds);
    epochs.push_back(run.epochs());
  }
  if (!qualities.empty()) score.quality = Median(qualities);
  score.variation = VariationOf(epochs);
  if (const auto mean = OlympicMeanOf(std::move(times))) score.seconds = mean->value;
  score.reached = score.seconds.has_value();
  return score;
}

nlohmann::ordered_json ToJson(const std::vector<Score>& scores) {
  using ScoreJson = nlohmann::ordered_json;
  ScoreJson tasks = ScoreJson::array();
  for (const Score& score : scores) {
    ScoreJson runs = ScoreJson::array();
    for (const RunRecord& run : score.runs) runs.push_back(ToJson(run));
    tasks.push_back({{"id", score.task},
                     {"reached", score.reached},
                     {"quality", OrNull(score.quality)},
                     {"target", OrNull(score.target)},
                     {"baseline", OrNull(score.baseline)},
                     {"seconds", OrNull(score.seconds)},
                     {"variation", OrNull(score.variation)},
                     {"convergence", score.convergence ? ToJson(*score.convergence) : Json()},
                     {"runs", std::move(runs)}});
  }
  return {{"format", "etude-suite"}, {"version", 1}, {"tasks", std::move(tasks)}};
}

Result<std::vector<Score>> ReadScores(const std::string& folder, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  // By the settings that runs of one group share.
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string, int64_t,
                      int64_t, std::string, std::string, NamedTexts>,
           std::vector<RunRecord>>
      groups;
  for (const std::string& name : names) {
    if (std::filesystem::path(name).extension() != ".json") continue;
    ETUDE_ASSIGN_OR_RETURN(RunRecord run, ReadRunRecord(folder + "/" + name, context));
    if (!run.complete) continue;
    groups[{run.task, run.scale, run.mode, run.device, run.precision, run.ranks, run.batch,
            run.optimizer, run.data_set, run.settings.value_or(NamedTexts())}]
        .push_back(std::move(run));
  }
  if (groups.empty()) {
    return BadInput(folder +
                    ": found no runs, expected a folder written by `etude suite run --output`");
  }
  ETUDE_ASSIGN_OR_RETURN(const auto references, BuiltInReferences(context));
  std::vector<Score> scores;
  for (auto& [key, runs] : groups) {
    std::ranges::sort(runs, {}, &RunRecord::seed);
    scores.push_back(ScoreOf(std::move(runs), references));
  }
  return scores;
}

}  // namespace etude::suite
