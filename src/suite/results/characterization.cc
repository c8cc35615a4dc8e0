#include "src/suite/results/characterization.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/memory/memory_use.h"
#include "src/analysis/view/trace_stats.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/run/recorded_run.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/score.h"
#include "src/transform/operators/operator_cost.h"

namespace etude::suite {
namespace {

using Json = nlohmann::ordered_json;

Cell TimeCell(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// Returns the share of the roofline that a step reaches: its FLOP rate by the best one at its
// intensity.
std::optional<double> RooflineShare(const Characterization& task, const MachinePeaks& peaks) {
  const std::optional<double> intensity = task.work.intensity();
  if (!intensity || peaks.flop_per_s <= 0) return std::nullopt;
  const double bound = std::min(peaks.flop_per_s, *intensity * peaks.bytes_per_s);
  return task.work.flop / task.step_seconds() / bound;
}

// Returns whether memory or arithmetic bounds the rate of a step.
std::string BoundOf(const Characterization& task, const MachinePeaks& peaks) {
  const std::optional<double> intensity = task.work.intensity();
  if (!intensity) return "";
  return *intensity * peaks.bytes_per_s < peaks.flop_per_s ? "memory" : "arithmetic";
}

std::vector<HotSpot> HotSpots() {
  std::vector<HotSpot> all;
  for (size_t i = 0; i <= static_cast<size_t>(kLastHotSpot); ++i) {
    all.push_back(static_cast<HotSpot>(i));
  }
  return all;
}

Table FactorTable(const Characterizations& all) {
  Table table{.key = "factors",
              .title = "Factors",
              .columns = {{"task", "task"},
                          {"parameters", "parameters", Unit::kCount},
                          {"flop_per_sample", "FLOP a sample", Unit::kNumber},
                          {"epochs", "epochs to target", Unit::kNumber},
                          {"runs", "runs", Unit::kCount},
                          {"blocks", "blocks"},
                          {"layers", "layers"},
                          {"loss", "loss"},
                          {"optimizer", "optimizer"}},
              .rows = {}};
  for (const Characterization& task : all.tasks) {
    const TaskFacts* facts = FindTask(task.steps.task);
    table.rows.push_back(
        {task.steps.task, task.steps.parameters,
         task.work.flop / static_cast<double>(task.steps.batch), ToCell(task.epochs_to_target()),
         CountCell(task.runs.size()), facts == nullptr ? Cell() : Cell(std::string(facts->blocks)),
         fmt::format("{}", fmt::join(task.work.layers, ", ")),
         facts == nullptr ? Cell() : Cell(std::string(facts->loss)), task.steps.optimizer});
  }
  return table;
}

Table StepTable(const Characterizations& all) {
  Table table{.key = "steps",
              .title = "Steps with one thread",
              .columns = {{"task", "task"},
                          {"batch", "batch", Unit::kCount},
                          {"step_ns", "step", Unit::kTime},
                          {"flop", "FLOP", Unit::kNumber},
                          {"bytes", "bytes moved", Unit::kBytes},
                          {"intensity", "FLOP/byte", Unit::kNumber},
                          {"bound", "bound by"},
                          {"roofline_share", "of the roofline", Unit::kShare},
                          {"tensor_bytes", "tensors", Unit::kBytes},
                          {"peak_bytes", "memory", Unit::kBytes},
                          {"efficiency", "parallel efficiency", Unit::kShare},
                          {"operators", "operators", Unit::kCount},
                          {"half", "take half", Unit::kCount},
                          {"most", "take 90 %", Unit::kCount}},
              .rows = {}};
  for (const Characterization& task : all.tasks) {
    const StepWork& work = task.work;
    const auto bytes = [](const std::optional<int64_t>& count) {
      return count ? Cell(*count) : Cell();
    };
    table.rows.push_back({task.steps.task, task.steps.batch, TimeCell(task.step_seconds()),
                          work.flop, static_cast<int64_t>(work.bytes), ToCell(work.intensity()),
                          BoundOf(task, all.peaks), ToCell(RooflineShare(task, all.peaks)),
                          bytes(work.tensor_bytes), bytes(task.steps.peak_bytes),
                          ToCell(task.efficiency()), work.operators, work.Covering(0.5),
                          work.Covering(0.9)});
  }
  return table;
}

// Hardware events of the timed steps.
Table CounterTable(const Characterizations& all) {
  Table table{.key = "counters",
              .title = "Hardware counters",
              .columns = {{"task", "task"},
                          {"instructions", "instructions a step", Unit::kNumber},
                          {"ipc", "instructions a cycle", Unit::kNumber},
                          {"cache_misses", "cache misses per 1,000 instructions", Unit::kNumber},
                          {"branch_misses", "branch misses per 1,000 instructions", Unit::kNumber}},
              .rows = {}};
  for (const Characterization& task : all.tasks) {
    if (!task.steps.counters) continue;
    const StepCounters& counters = *task.steps.counters;
    const auto per = [](const std::optional<double>& a, const std::optional<double>& b,
                        double factor) {
      return a && b && *b > 0 ? Cell(factor * *a / *b) : Cell();
    };
    table.rows.push_back({task.steps.task, ToCell(counters.instructions),
                          per(counters.instructions, counters.cycles, 1),
                          per(counters.cache_misses, counters.instructions, 1e3),
                          per(counters.branch_misses, counters.instructions, 1e3)});
  }
  return table;
}

// Shares of each category in the self time of a step's operators, one column per category that any
// task has.
Table HotSpotTable(const Characterizations& all) {
  Table table{
      .key = "hot_spots", .title = "Time by kind of operator", .columns = {{"task", "task"}}};
  std::vector<HotSpot> used;
  for (const HotSpot category : HotSpots()) {
    const bool any = std::ranges::any_of(all.tasks, [&](const Characterization& task) {
      return task.work.shares[static_cast<size_t>(category)] > 0;
    });
    if (!any) continue;
    used.push_back(category);
    table.columns.push_back(
        {std::string(Name(category)), std::string(Name(category)), Unit::kShare});
  }
  for (const Characterization& task : all.tasks) {
    std::vector<Cell> row{task.steps.task};
    for (const HotSpot category : used) {
      row.emplace_back(task.work.shares[static_cast<size_t>(category)]);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table OperatorTable(const Characterizations& all) {
  constexpr double kLeastShare = 0.01;
  Table table{.key = "operators",
              .title = "Operators that take at least 1 % of the time",
              .columns = {{"task", "task"},
                          {"operator", "operator"},
                          {"category", "category"},
                          {"count", "calls", Unit::kCount},
                          {"share", "share", Unit::kShare}},
              .rows = {}};
  for (const Characterization& task : all.tasks) {
    for (const StepWork::Operator& one : task.work.by_share) {
      if (one.share < kLeastShare) break;
      table.rows.push_back(
          {task.steps.task, one.name, std::string(Name(one.category)), one.count, one.share});
    }
  }
  return table;
}

Json ToJson(const StepWork& work) {
  Json categories = Json::object();
  for (const HotSpot category : HotSpots()) {
    const double share = work.shares[static_cast<size_t>(category)];
    if (share > 0) categories[std::string(Name(category))] = share;
  }
  Json operators = Json::array();
  for (const StepWork::Operator& one : work.by_share) {
    operators.push_back({{"name", one.name},
                         {"category", Name(one.category)},
                         {"share", one.share},
                         {"count", one.count}});
  }
  return {{"half", work.Covering(0.5)},
          {"most", work.Covering(0.9)},
          {"categories", std::move(categories)},
          {"operators", std::move(operators)}};
}

// Returns the parts of "residual blocks, region proposals".
std::vector<std::string> PartsOf(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return parts;
}

Json ToJson(const Characterization& task) {
  const RunRecord& steps = task.steps;
  const TaskFacts* facts = FindTask(steps.task);
  Json parallel;
  if (task.steps_of_all) {
    parallel = {{"threads", task.steps_of_all->threads},
                {"one_thread_seconds", task.step_seconds()},
                {"seconds", Median(task.steps_of_all->step_seconds)},
                {"efficiency", OrNull(task.efficiency())}};
  }
  Json counters;
  if (steps.counters) {
    counters = {{"instructions", OrNull(steps.counters->instructions)},
                {"cycles", OrNull(steps.counters->cycles)},
                {"cache_misses", OrNull(steps.counters->cache_misses)},
                {"branch_misses", OrNull(steps.counters->branch_misses)}};
  }
  Json runs = Json::array();
  for (const RunRecord& run : task.runs) {
    runs.push_back({{"seed", run.seed},
                    {"reached", run.reached},
                    {"epochs", run.epochs()},
                    {"steps", run.steps},
                    {"seconds", run.seconds},
                    {"evaluate_every", OrNull(run.evaluate_every)}});
  }
  return {{"id", steps.task},
          {"aibench", steps.aibench},
          {"data_set", steps.data_set},
          {"parameters", steps.parameters},
          {"batch", steps.batch},
          {"samples", steps.samples},
          {"optimizer", steps.optimizer},
          {"loss", facts == nullptr ? Json() : Json(facts->loss)},
          {"blocks", facts == nullptr ? Json() : Json(PartsOf(facts->blocks))},
          {"layers", task.work.layers},
          {"step",
           {{"seconds", task.step_seconds()},
            {"flop", task.work.flop},
            {"bytes", task.work.bytes},
            {"operators", task.work.operators},
            {"without_shapes", task.work.without_shapes},
            {"tensor_bytes", OrNull(task.work.tensor_bytes)}}},
          {"hot_spots", ToJson(task.work)},
          {"parallel", std::move(parallel)},
          {"counters", std::move(counters)},
          {"why_no_counters", steps.why_no_counters},
          {"peak_bytes", OrNull(steps.peak_bytes)},
          {"runs", std::move(runs)}};
}

// Returns the tasks as points of the roofline model, and its limits as a line.
Chart RooflineChart(const Characterizations& all) {
  Chart chart{.title = "Roofline",
              .kind = Chart::Kind::kScatter,
              .unit = Unit::kNumber,
              .note = "Rates by the operations and bytes of operators, whose caches are ignored.",
              .over_unit = Unit::kNumber,
              .over_title = "FLOP/byte",
              .is_log = true};
  Chart::Series tasks{.name = "GFLOP/s of a step"};
  double least = 1e300;
  double most = 0;
  for (const Characterization& task : all.tasks) {
    const std::optional<double> intensity = task.work.intensity();
    if (!intensity || *intensity <= 0) continue;
    tasks.overs.emplace_back(*intensity);
    tasks.values.emplace_back(task.work.flop / task.step_seconds() / 1e9);
    tasks.names.push_back(task.steps.task);
    least = std::min(least, *intensity);
    most = std::max(most, *intensity);
  }
  if (tasks.names.empty() || all.peaks.bytes_per_s <= 0) return chart;
  const double ridge = all.peaks.flop_per_s / all.peaks.bytes_per_s;
  Chart::Series roof{.name = "roofline", .is_line = true};
  for (const double at : {std::min(least, ridge) / 2, ridge, std::max(most, ridge) * 2}) {
    roof.overs.emplace_back(at);
    roof.values.emplace_back(std::min(all.peaks.flop_per_s, at * all.peaks.bytes_per_s) / 1e9);
    roof.names.emplace_back("roofline");
  }
  chart.series = {std::move(tasks), std::move(roof)};
  return chart;
}

// Returns the tasks as lines over their factors.
Chart FactorChart(Table factors, const Table& steps) {
  factors.columns.insert(factors.columns.end(), steps.columns.begin() + 1, steps.columns.end());
  for (size_t i = 0; i < factors.rows.size(); ++i) {
    factors.rows[i].insert(factors.rows[i].end(), steps.rows[i].begin() + 1, steps.rows[i].end());
  }
  std::ranges::find(factors.columns, "most", &Table::Column::key)->title =
      "operators that take 90 %";
  return Parallel(factors, {.title = "Tasks by their factors",
                            .name = "task",
                            .values = {"parameters", "flop_per_sample", "epochs", "step_ns",
                                       "intensity", "tensor_bytes", "efficiency", "most"}});
}

// Returns a stacked bar per task.
Chart HotSpotChart(const Table& table) {
  Chart chart{.title = table.title, .kind = Chart::Kind::kStacked, .unit = Unit::kShare};
  for (const std::vector<Cell>& row : table.rows) {
    chart.categories.push_back(std::get<std::string>(row.front()));
  }
  for (size_t column = 1; column < table.columns.size(); ++column) {
    Chart::Series series{.name = table.columns[column].title};
    for (const std::vector<Cell>& row : table.rows) series.values.push_back(row[column]);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::optional<double> StepWork::intensity() const {
  if (bytes <= 0) return std::nullopt;
  return flop / bytes;
}

int64_t StepWork::Covering(double share) const {
  constexpr double kRounding = 1e-9;
  double sum = 0;
  int64_t count = 0;
  for (const Operator& one : by_share) {
    if (sum >= share - kRounding) break;
    sum += one.share;
    ++count;
  }
  return count;
}

Result<StepWork> WorkOfStep(const Trace& trace) {
  StepWork work;
  const Work done = WorkOf(trace);
  work.flop = done.flop;
  work.bytes = done.bytes;
  work.without_shapes = done.without_shapes;
  const RecordedRun run(trace);
  const TraceStats stats = CountTrace(run);
  double total = 0;
  std::set<std::string> layers;
  for (const TraceStats::Op& op : stats.ops) {
    if (op.kind != NodeKind::kOperator) continue;
    work.operators += static_cast<int64_t>(op.count);
    const auto self = static_cast<double>(op.self.value_or(Nanos{}).count);
    total += self;
    work.by_share.push_back({.name = std::string(op.name),
                             .category = HotSpotOf(op.name),
                             .count = static_cast<int64_t>(op.count),
                             .share = self});
    if (const std::string_view layer = LayerOf(op.name); !layer.empty()) layers.emplace(layer);
  }
  if (total <= 0) return BadInput("found no operators with times, expected a recorded step");
  for (StepWork::Operator& one : work.by_share) {
    one.share /= total;
    work.shares[static_cast<size_t>(one.category)] += one.share;
  }
  std::ranges::stable_sort(work.by_share, std::greater(), &StepWork::Operator::share);
  work.layers.assign(layers.begin(), layers.end());
  if (const auto memory = TensorMemory(trace)) {
    int64_t bytes = 0;
    for (const DeviceMemory& device : *memory) bytes += device.peak.count;
    work.tensor_bytes = bytes;
  }
  return work;
}

std::optional<double> Characterization::efficiency() const {
  if (!steps_of_all) return std::nullopt;
  return step_seconds() /
         (Median(steps_of_all->step_seconds) * static_cast<double>(steps_of_all->threads));
}

std::optional<double> Characterization::epochs_to_target() const {
  double sum = 0;
  int64_t count = 0;
  for (const RunRecord& run : runs) {
    if (!run.reached) continue;
    sum += run.epochs();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::vector<Table> CharacterizationTables(const Characterizations& all) {
  return {FactorTable(all), StepTable(all), CounterTable(all), HotSpotTable(all),
          OperatorTable(all)};
}

Json ToJson(const Characterizations& all) {
  Json json{{"format", "etude-suite-characterization"}, {"version", 1}, {"scale", all.scale}};
  if (!all.tasks.empty()) {
    const RunRecord& run = all.tasks.front().steps;
    json["machine"] = etude::ToJson(run.machine);
    json["torch"] = run.torch;
    json["device"] = run.device;
    json["threads"] = run.threads;
  }
  json["peaks"] = {{"flop_per_s", all.peaks.flop_per_s}, {"bytes_per_s", all.peaks.bytes_per_s}};
  json["tasks"] = Json::array();
  for (const Characterization& task : all.tasks) json["tasks"].push_back(ToJson(task));
  return json;
}

Page MakeCharacterizationPage(const Characterizations& all, const std::string& folder) {
  Page page{.title = "Characterization of the suite's tasks", .inputs = {folder}};
  std::vector<Table> tables = CharacterizationTables(all);
  Page::Section factors{
      .key = "factors",
      .title = "Factors",
      .about = "Model, work per sample and epochs to the target: what decides how a task learns."};
  factors.charts.push_back(FactorChart(tables[0], tables[1]));
  factors.tables.push_back(std::move(tables[0]));
  Page::Section steps{.key = "steps",
                      .title = "Steps",
                      .about = "Work of a training step and its place in the roofline model."};
  steps.facts = {{"matrix product", all.peaks.flop_per_s / 1e9, Unit::kNumber},
                 {"copy", all.peaks.bytes_per_s, Unit::kRate}};
  steps.notes = {"The first figure is the rate of a large matrix product in GFLOP/s."};
  steps.charts.push_back(RooflineChart(all));
  steps.tables.push_back(std::move(tables[1]));
  if (tables[2].rows.empty()) {
    if (!all.tasks.empty()) {
      steps.notes.push_back("No hardware counters: " + all.tasks.front().steps.why_no_counters);
    }
  } else {
    steps.tables.push_back(std::move(tables[2]));
  }
  Page::Section spots{.key = "hot_spots",
                      .title = "Hot spots",
                      .about = "Operators by the kind of their work, by self time in one step."};
  spots.charts.push_back(HotSpotChart(tables[3]));
  spots.tables.push_back(std::move(tables[3]));
  spots.tables.push_back(std::move(tables[4]));
  page.sections = {std::move(factors), std::move(steps), std::move(spots)};
  return page;
}

}  // namespace etude::suite
