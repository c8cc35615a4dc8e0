#include "src/suite/subset/task_factors.h"

#include <algorithm>
#include <utility>

#include "src/formats/io/byte_source.h"
#include "src/formats/json/json_document.h"
#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

constexpr DocumentKind kFactorsFile{.name = "a characterization of the suite",
                                    .format = "etude-suite-characterization"};

std::optional<double> Amount(const JsonMembers& members, const char* key) {
  const std::optional<double> found = members.Number(key);
  if (found && *found < 0) members.Refuse(key, "a number from 0");
  return found;
}

std::optional<double> Share(const JsonMembers& members, const char* key) {
  const std::optional<double> found = Amount(members, key);
  if (found && *found > 1 + 1e-9) members.Refuse(key, "a share from 0 to 1");
  return found;
}

TaskFactors::Run ParseFactorRun(const JsonMembers& run) {
  TaskFactors::Run found;
  const std::optional<int64_t> seed = run.Whole("seed", 0);
  if (!seed) run.Refuse("seed", "a seed");
  found.seed = seed.value_or(0);
  found.reached = run.Truth("reached").value_or(false);
  found.epochs = Amount(run, "epochs");
  found.steps = run.Whole("steps", 0);
  found.evaluate_every = run.Whole("evaluate_every", 1);
  if (found.reached && found.epochs.value_or(0) <= 0) {
    run.Refuse("epochs", "a number above 0, because the run reached its target");
  }
  return found;
}

TaskFactors ParseFactors(const JsonMembers& task) {
  TaskFactors found;
  found.task = task.Text("id").value_or("");
  if (FindTask(found.task) == nullptr) task.Refuse("id", "a task of `etude suite list`");
  found.data_set = task.Text("data_set").value_or("");
  found.optimizer = task.Text("optimizer").value_or("");
  found.parameters = task.Whole("parameters", 1);
  found.batch = task.Whole("batch", 1);
  found.samples = task.Whole("samples", 1);
  const JsonMembers step = task.Object("step");
  found.step_seconds = Amount(step, "seconds");
  found.flop = Amount(step, "flop");
  found.bytes = Amount(step, "bytes");
  const JsonMembers categories = task.Object("hot_spots").Object("categories");
  if (!categories.empty()) {
    auto& shares = found.hot_spots.emplace();
    for (const auto& [name, value] : categories.json().items()) {
      if (const auto share = Share(categories, name.c_str())) shares[name] = *share;
    }
  }
  found.parallel_efficiency = Amount(task.Object("parallel"), "efficiency");
  const JsonMembers counters = task.Object("counters");
  found.instructions = Amount(counters, "instructions");
  found.cycles = Amount(counters, "cycles");
  found.cache_misses = Amount(counters, "cache_misses");
  found.branch_misses = Amount(counters, "branch_misses");
  for (const JsonMembers& run : task.Objects("runs")) {
    found.runs.push_back(ParseFactorRun(run));
    const auto same = [&](const TaskFactors::Run& other) {
      return other.seed == found.runs.back().seed;
    };
    if (std::ranges::count_if(found.runs, same) > 1) {
      run.Refuse("seed", "a seed that no other run of the task has");
    }
  }
  return found;
}

Result<CharacterizedTasks> ToCharacterization(const std::string& path,
                                              const nlohmann::json& document) {
  Status status;
  const JsonMembers members(path, document, status);
  CharacterizedTasks found{.path = path, .scale = members.Text("scale").value_or(""), .tasks = {}};
  if (found.scale != Name(Scale::kSmoke) && found.scale != Name(Scale::kPaper)) {
    members.Refuse("scale", "\"smoke\" or \"paper\"");
  }
  for (const JsonMembers& task : members.Objects("tasks")) {
    found.tasks.push_back(ParseFactors(task));
    if (std::ranges::count(found.tasks, found.tasks.back().task, &TaskFactors::task) > 1) {
      task.Refuse("id", "each task once");
    }
  }
  ETUDE_RETURN_IF_ERROR(status);
  return found;
}

}  // namespace

Result<CharacterizedTasks> ParseCharacterization(const std::string& path, std::string_view text,
                                                 const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document,
                         ParseDocument(path, text, kFactorsFile, context));
  return ToCharacterization(path, document);
}

Result<CharacterizedTasks> ReadCharacterization(const std::string& path,
                                                const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document, ReadDocument(path, kFactorsFile, context));
  return ToCharacterization(path, document);
}

}  // namespace etude::suite
