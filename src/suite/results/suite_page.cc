#include "src/suite/results/suite_page.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace etude::suite {
namespace {

std::string VerdictOn(const RunRecord& run, bool reached) {
  if (run.mode == "steps" || !run.target) return "–";
  return reached ? "reached" : "missed";
}

Cell TimeCell(const std::optional<double>& seconds) {
  return seconds ? Cell(static_cast<int64_t>(std::llround(*seconds * 1e9))) : Cell();
}

Cell TextCell(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

// Returns "batch 8, frozen yes".
Cell SettingsCell(const RunRecord& run) {
  std::string text;
  for (const auto& [name, value] : run.settings.value_or(NamedTexts())) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return TextCell(text);
}

// Returns the median step of runs in steps mode.
std::optional<double> StepSeconds(const RunRecord& run) {
  if (run.step_seconds.empty()) return std::nullopt;
  return Median(run.step_seconds);
}

// Returns a table of all evaluations of a task's runs.
Table CurveTable(const Score& score, const std::string& key) {
  Table table{.key = "curve_" + key,
              .title = "Evaluations",
              .columns = {{"run", "run"},
                          {"step", "steps", Unit::kCount},
                          {"time_ns", "time", Unit::kTime},
                          {"quality", "quality", Unit::kNumber},
                          {"loss", "loss", Unit::kNumber}},
              .rows = {}};
  for (const RunRecord& run : score.runs) {
    for (const QualityPoint& point : run.curve) {
      table.rows.push_back({fmt::format("seed {}", run.seed), point.step, TimeCell(point.seconds),
                            point.quality, ToCell(point.loss)});
    }
  }
  return table;
}

// `key` must be unique on the page.
Page::Section CurveSection(const Score& score, const std::string& key) {
  const RunRecord& run = score.runs.front();
  Page::Section section{
      .key = "course_" + key,
      .title = TaskText(run),
      .about = fmt::format("{} of each run over time{}; {} is better.", run.metric,
                           run.target ? fmt::format(", until it was {:.4g}", *run.target) : "",
                           run.higher_is_better ? "more" : "less")};
  Table curve = CurveTable(score, key);
  section.charts.push_back(Steps(
      curve, {.title = run.metric, .series = {"run"}, .time = "time_ns", .value = "quality"}));
  section.charts.push_back(
      Steps(curve, {.title = "Loss", .series = {"run"}, .time = "time_ns", .value = "loss"}));
  section.tables.push_back(std::move(curve));
  return section;
}

Page::Section MachineSection(const std::vector<Score>& scores) {
  Page::Section section{
      .key = "machines", .title = "Machines", .about = "Machine and software of the runs."};
  std::set<std::string> machines;
  for (const Score& score : scores) {
    for (const RunRecord& run : score.runs) {
      machines.insert(fmt::format("{}; PyTorch {}", etude::ToText(run.machine), run.torch));
    }
  }
  section.notes.assign(machines.begin(), machines.end());
  return section;
}

}  // namespace

Table ScoreTable(const std::vector<Score>& scores) {
  Table table{.key = "tasks",
              .title = "Tasks",
              .columns = {{"task", "task"},
                          {"scale", "scale"},
                          {"mode", "mode"},
                          {"data_set", "data set"},
                          {"settings", "settings"},
                          {"runs", "runs", Unit::kCount},
                          {"reached", "target"},
                          {"quality", "quality", Unit::kNumber},
                          {"target", "wanted", Unit::kNumber},
                          {"baseline", "baseline", Unit::kNumber},
                          {"time_ns", "time to quality", Unit::kTime},
                          {"variation", "variation", Unit::kShare}},
              .rows = {}};
  for (const Score& score : scores) {
    const RunRecord& run = score.runs.front();
    const std::string verdict = VerdictOn(run, score.reached);
    table.rows.push_back({score.task, run.scale, run.mode, TextCell(run.data_set),
                          SettingsCell(run), CountCell(score.runs.size()), verdict,
                          ToCell(score.quality), ToCell(score.target), ToCell(score.baseline),
                          TimeCell(score.seconds), ToCell(score.variation)});
  }
  return table;
}

Table RunTable(const std::vector<Score>& scores) {
  Table table{.key = "runs",
              .title = "Runs",
              .columns = {{"task", "task"},
                          {"seed", "seed", Unit::kCount},
                          {"reached", "target"},
                          {"quality", "quality", Unit::kNumber},
                          {"time_ns", "time", Unit::kTime},
                          {"evaluation_ns", "evaluations", Unit::kTime},
                          {"epochs", "epochs", Unit::kNumber},
                          {"samples_per_second", "samples/s", Unit::kNumber},
                          {"step_ns", "step", Unit::kTime},
                          {"energy_j", "energy (J)", Unit::kNumber},
                          {"precision", "precision"},
                          {"ranks", "ranks", Unit::kCount},
                          {"threads", "threads", Unit::kCount},
                          {"batch", "batch", Unit::kCount},
                          {"skipped_steps", "skipped steps", Unit::kCount},
                          {"underflow_share", "underflow", Unit::kShare},
                          {"peak_bytes", "memory", Unit::kBytes},
                          {"noise", "noise", Unit::kShare},
                          {"data_set", "data set"},
                          {"settings", "settings"}},
              .rows = {}};
  for (const Score& score : scores) {
    for (const RunRecord& run : score.runs) {
      table.rows.push_back({run.task,
                            run.seed,
                            VerdictOn(run, run.reached),
                            ToCell(run.quality),
                            TimeCell(run.seconds),
                            TimeCell(run.evaluation_seconds),
                            run.epochs(),
                            ToCell(run.samples_per_second()),
                            TimeCell(StepSeconds(run)),
                            ToCell(run.energy_j),
                            run.precision,
                            run.ranks,
                            run.threads,
                            run.batch,
                            run.skipped_steps,
                            ToCell(run.underflow),
                            run.peak_bytes ? Cell(*run.peak_bytes) : Cell(),
                            ToCell(run.noise),
                            TextCell(run.data_set),
                            SettingsCell(run)});
    }
  }
  return table;
}

Table ConvergenceTable(const std::vector<Score>& scores) {
  Table table{.key = "convergence",
              .title = "Convergence",
              .columns = {{"task", "task"},
                          {"epochs", "epochs to the target", Unit::kNumber},
                          {"reference_epochs", "reference", Unit::kNumber},
                          {"least_epochs", "at least", Unit::kNumber},
                          {"verdict", "verdict"}},
              .rows = {}};
  for (const Score& score : scores) {
    if (!score.convergence) continue;
    const Convergence& found = *score.convergence;
    table.rows.push_back({score.task, ToCell(found.epochs), ToCell(found.reference),
                          ToCell(found.least), VerdictText(found)});
  }
  return table;
}

Page MakeSuitePage(const std::vector<Score>& scores, const std::vector<std::string>& folders) {
  Page page{.title = "Etude suite", .inputs = folders};
  Page::Section results{.key = "results",
                        .title = "Results",
                        .about =
                            "Time to quality of each task: the mean over its runs; with five or "
                            "more runs, without the fastest and the slowest. Variation: standard "
                            "deviation of the epochs to the target, divided by their mean."};
  Table table = ScoreTable(scores);
  results.charts.push_back(
      Bars(table, {.title = "Time to quality", .categories = {"task"}, .values = {"time_ns"}}));
  results.tables.push_back(std::move(table));
  results.tables.push_back(ConvergenceTable(scores));
  page.sections.push_back(std::move(results));
  std::map<std::string, int> courses;  // by task
  for (const Score& score : scores) {
    if (score.runs.front().mode != "quality") continue;
    const int number = ++courses[score.task];
    page.sections.push_back(
        CurveSection(score, number == 1 ? score.task : fmt::format("{}_{}", score.task, number)));
  }
  Page::Section runs{.key = "all_runs", .title = "Runs", .about = "Individual runs."};
  runs.tables.push_back(RunTable(scores));
  page.sections.push_back(std::move(runs));
  page.sections.push_back(MachineSection(scores));
  return page;
}

}  // namespace etude::suite
