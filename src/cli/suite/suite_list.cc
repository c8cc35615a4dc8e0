#include "src/cli/app/commands.h"

#include <string>

#include <fmt/format.h>

#include "src/report/text/table.h"
#include "src/suite/results/catalogue.h"

namespace etude {
namespace {

using nlohmann::ordered_json;
using suite::Target;
using suite::TaskFacts;

std::string TargetText(const std::optional<Target>& target) {
  return target ? fmt::format("{} ({})", target->quality, suite::Name(target->origin)) : "none";
}

ordered_json TargetJson(const std::optional<Target>& target) {
  if (!target) return nullptr;
  return {{"quality", target->quality}, {"origin", suite::Name(target->origin)}};
}

class SuiteListCommand : public Command {
 public:
  std::string_view name() const override { return "list"; }
  std::string_view summary() const override { return "show the tasks and their targets"; }

  void Declare(Options& options) override { options.Flag("--json", &json_, "print JSON"); }

  Result<ExitCode> Run(const Console& console) override {
    if (json_) {
      ordered_json tasks = ordered_json::array();
      for (const TaskFacts& task : suite::Catalogue()) tasks.push_back(ToJson(task));
      console.Print(
          ordered_json{{"format", "etude-suite-list"}, {"version", 1}, {"tasks", tasks}}.dump(1) +
          "\n");
      return ExitCode::kOk;
    }
    Table table{.key = "tasks",
                .title = "Tasks",
                .columns = {{"id", "task"},
                            {"aibench", "AIBench"},
                            {"model", "model"},
                            {"metric", "metric"},
                            {"smoke", "smoke target"},
                            {"paper", "paper target"},
                            {"smoke_data", "smoke data"}},
                .rows = {}};
    for (const TaskFacts& task : suite::Catalogue()) {
      table.rows.push_back({std::string(task.id), std::string(task.aibench),
                            std::string(task.model), std::string(task.metric.name),
                            TargetText(task.smoke), TargetText(task.published),
                            std::string(task.smoke_data)});
    }
    console.Print(
        ToText(table) +
        "Sources of targets: measured here with several seeds, found on AIBench's web pages, "
        "or recalled\nfrom its papers (docs/suite.md).\n");
    return ExitCode::kOk;
  }

 private:
  static ordered_json ToJson(const TaskFacts& task) {
    return {{"id", task.id},
            {"aibench", task.aibench},
            {"title", task.title},
            {"model", task.model},
            {"paper", task.paper},
            {"metric", task.metric.name},
            {"higher_is_better", task.metric.higher_is_better},
            {"baseline", task.baseline},
            {"smoke", {{"data", task.smoke_data}, {"target", TargetJson(task.smoke)}}},
            {"paper_scale", {{"data", task.paper_data}, {"target", TargetJson(task.published)}}}};
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteListCommand() { return std::make_unique<SuiteListCommand>(); }

}  // namespace etude
