#include "src/cli/app/commands.h"

#include <string>
#include <utility>
#include <vector>

#include "src/report/text/json_output.h"
#include "src/suite/results/ranking.h"
#include "src/suite/results/score.h"
#include "src/suite/results/suite_page.h"

namespace etude {
namespace {

using nlohmann::ordered_json;
using suite::Ranking;

ordered_json ToJson(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->value}, {"low", estimate->low}, {"high", estimate->high}};
}

// Returns a row per task and system.
Table SystemsConvergence(const std::vector<suite::RankedSystem>& systems) {
  Table all = suite::ConvergenceTable({});
  all.columns.insert(all.columns.begin(), {"system", "system"});
  for (const suite::RankedSystem& system : systems) {
    Table own = suite::ConvergenceTable(system.scores);
    for (std::vector<Cell>& row : own.rows) {
      row.insert(row.begin(), system.name);
      all.rows.push_back(std::move(row));
    }
  }
  return all;
}

ordered_json ConvergenceJson(const std::vector<suite::RankedSystem>& systems) {
  ordered_json rows = ordered_json::array();
  for (const suite::RankedSystem& system : systems) {
    for (const suite::Score& score : system.scores) {
      if (!score.convergence) continue;
      ordered_json& row = rows.emplace_back();
      row = {{"id", score.task}, {"system", system.name}};
      row.update(suite::ToJson(*score.convergence));
    }
  }
  return rows;
}

ordered_json ToJson(const Ranking& ranking) {
  ordered_json systems = ordered_json::array();
  for (const Ranking::SystemRow& row : ranking.systems) {
    systems.push_back(
        {{"system", row.system},
         {"rank", row.rank == 0 ? ordered_json() : ordered_json(row.rank)},
         {"best_rank", row.rank == 0 ? ordered_json() : ordered_json(row.best_rank)},
         {"worst_rank", row.rank == 0 ? ordered_json() : ordered_json(row.worst_rank)},
         {"speed", ToJson(row.speed)},
         {"noise", OrNull(row.noise)}});
  }
  ordered_json tasks = ordered_json::array();
  for (const Ranking::TaskRow& row : ranking.by_task) {
    tasks.push_back({{"id", row.task},
                     {"system", row.system},
                     {"seconds", OrNull(row.seconds)},
                     {"speed", ToJson(row.speed)}});
  }
  return {{"format", "etude-suite-ranking"},
          {"version", 1},
          {"systems", systems},
          {"tasks", tasks},
          {"notes", ranking.notes}};
}

class SuiteCompareCommand : public Command {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override { return "rank systems by their suite runs"; }

  void Declare(Options& options) override {
    options.Positionals(
        "folders", &folders_,
        "two or more folders, each written by `etude suite run --output` on one system");
    options.Value("--seed", &seed_, "N", "seed for the resampling of intervals", {.least = 0});
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (folders_.size() < 2) {
      return MakeError(ErrorCode::kUsage, "found one folder of runs, expected at least two");
    }
    std::vector<suite::RankedSystem> systems;
    for (const std::string& folder : folders_) {
      ETUDE_ASSIGN_OR_RETURN(auto scores, suite::ReadScores(folder, console.context()));
      systems.push_back({folder, std::move(scores)});
    }
    ETUDE_ASSIGN_OR_RETURN(const Ranking ranking,
                           suite::RankSystems(systems, static_cast<uint64_t>(seed_)));
    if (json_) {
      ordered_json json = ToJson(ranking);
      json["convergence"] = ConvergenceJson(systems);
      console.Print(JsonText(json, 1));
      return ExitCode::kOk;
    }
    std::string text = ToText(SystemTable(ranking)) + ToText(TaskTable(ranking)) +
                       ToText(SystemsConvergence(systems));
    for (const std::string& note : ranking.notes) text += "note: " + note + "\n";
    console.Print(text);
    return ExitCode::kOk;
  }

 private:
  std::vector<std::string> folders_;
  int64_t seed_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteCompareCommand() {
  return std::make_unique<SuiteCompareCommand>();
}

}  // namespace etude
