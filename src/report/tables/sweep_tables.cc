#include "src/report/tables/sweep_tables.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/version.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

bool IsDone(const SweepRow& row) { return row.is_done(); }

int64_t StepOf(const SweepRow& row) {
  return IsDone(row) ? row.outcome->times->step : std::numeric_limits<int64_t>::max();
}

SweepOrder OrderOf(const SweepResults& results) {
  return results.order.value_or(DefaultOrder(results.rows));
}

const PlanFacts* PlanOf(const SweepRow& row) {
  return row.outcome && row.outcome->plan ? &*row.outcome->plan : nullptr;
}

// Returns the unit of work, "tokens"; "items" if rows differ.
std::string ItemsOf(const std::vector<const SweepRow*>& rows) {
  std::string item;
  for (const SweepRow* row : rows) {
    const PlanFacts* plan = PlanOf(*row);
    if (plan == nullptr) continue;
    if (!item.empty() && item != plan->item) return "items";
    item = plan->item;
  }
  return item + "s";
}

// A table column with a figure of a row's plan.
struct PlanColumn {
  Table::Column column;
  Cell (*cell)(const SweepRow& row);
  bool is_short = true;  // also in texts
};

template <Bytes PlanMemory::*Part>
Cell MemoryCell(const SweepRow& row) {
  return (PlanOf(row)->memory.*Part).count;
}

// Returns the columns of rows with a plan.
std::vector<PlanColumn> PlanColumns(const std::string& items) {
  return {
      {{"item", "item", Unit::kText},
       [](const SweepRow& row) -> Cell { return PlanOf(row)->item; },
       false},
      {{"items", "items", Unit::kCount},
       [](const SweepRow& row) -> Cell { return PlanOf(row)->items; },
       false},
      {{"items_per_s", items + "/s", Unit::kNumber},
       [](const SweepRow& row) -> Cell {
         const auto rates = row.rates();
         return rates ? Cell(rates->items_per_second) : Cell();
       }},
      {{"items_per_s_per_device", "per device", Unit::kNumber},
       [](const SweepRow& row) -> Cell {
         const auto rates = row.rates();
         return rates ? Cell(rates->items_per_second_per_device) : Cell();
       }},
      {{"mfu", "MFU", Unit::kShare},
       [](const SweepRow& row) -> Cell {
         const auto rates = row.rates();
         return rates ? ToCell(rates->mfu) : Cell();
       }},
      {{"bubble", "bubble", Unit::kShare},
       [](const SweepRow& row) -> Cell { return ToCell(PlanOf(row)->bubble); }},
      {{"memory_bytes", "memory", Unit::kBytes}, MemoryCell<&PlanMemory::peak>},
      {{"weights_bytes", "weights", Unit::kBytes}, MemoryCell<&PlanMemory::weights>, false},
      {{"gradients_bytes", "gradients", Unit::kBytes}, MemoryCell<&PlanMemory::gradients>, false},
      {{"optimizer_bytes", "optimizer", Unit::kBytes}, MemoryCell<&PlanMemory::optimizer>, false},
      {{"cache_bytes", "cache", Unit::kBytes}, MemoryCell<&PlanMemory::cache>, false},
      {{"activations_bytes", "activations", Unit::kBytes},
       [](const SweepRow& row) -> Cell { return PlanOf(row)->memory.activations().count; },
       false},
      {{"capacity_bytes", "capacity", Unit::kBytes},
       [](const SweepRow& row) -> Cell { return ToCell(row.known_capacity()); },
       false},
      {{"fits", "fits", Unit::kText},
       [](const SweepRow& row) -> Cell {
         const auto fits = row.fits();
         if (!fits) return {};
         return std::string(*fits ? "yes" : "no");
       }},
  };
}

// Returns whether points are ranked or compared by the time of their ranks.
bool HasRankSeconds(const SweepResults& results) {
  return results.order == SweepOrder::kRankSeconds ||
         std::ranges::find(results.measures, SweepMeasure::kRankSeconds) != results.measures.end();
}

// `whole`: includes time breakdown, state and membership in the front.
Table RowsTable(const SweepResults& results, const std::vector<const SweepRow*>& rows, bool whole) {
  Table table{.key = "points", .title = "Points", .columns = {}, .rows = {}};
  table.columns.push_back({"point", "point", Unit::kCount});
  for (const std::string& axis : results.axes) table.columns.push_back({axis, axis, Unit::kText});
  const bool priced =
      std::ranges::any_of(rows, [](const SweepRow* row) { return row->cost.has_value(); });
  if (whole) table.columns.push_back({"state", "state", Unit::kText});
  const std::span<const SweepTimeColumn> times =
      std::span(kSweepTimes).first(whole ? std::size(kSweepTimes) : 1);
  std::vector<PlanColumn> of_plans;
  if (std::ranges::any_of(rows, [](const SweepRow* row) { return PlanOf(*row) != nullptr; })) {
    of_plans = PlanColumns(ItemsOf(rows));
    if (!whole) std::erase_if(of_plans, [](const PlanColumn& one) { return !one.is_short; });
  }
  const auto add_time = [&](const SweepTimeColumn& column) {
    table.columns.push_back({column.key, column.title, Unit::kTime});
  };
  add_time(times.front());
  for (const PlanColumn& one : of_plans) table.columns.push_back(one.column);
  for (const SweepTimeColumn& column : times.subspan(1)) add_time(column);
  table.columns.push_back({"npus", "NPUs", Unit::kCount});
  table.columns.push_back({"bandwidth_gb_s", "links (GB/s)", Unit::kNumber});
  if (priced) table.columns.push_back({"cost", "cost", Unit::kNumber});
  const bool has_rank_seconds = HasRankSeconds(results);
  if (has_rank_seconds) table.columns.push_back({"rank_seconds", "rank-seconds", Unit::kNumber});
  const bool has_energy =
      std::ranges::any_of(rows, [](const SweepRow* row) { return row->energy().has_value(); });
  if (has_energy) table.columns.push_back({"energy_joules", "energy (J)", Unit::kNumber});
  const bool marked = whole && !results.measures.empty();
  if (marked) table.columns.push_back({"best", "Pareto", Unit::kText});
  for (const SweepRow* row : rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.push_back(CountCell(row->point + 1));
    for (const std::string& label : row->labels) cells.push_back(label);
    if (whole) {
      cells.push_back(row->outcome ? Cell(std::string(Name(row->outcome->state))) : Cell());
    }
    const auto time_cell = [&](const SweepTimeColumn& column) {
      cells.push_back(IsDone(*row) ? Cell((*row->outcome->times).*column.time) : Cell());
    };
    time_cell(times.front());
    for (const PlanColumn& one : of_plans) {
      cells.push_back(PlanOf(*row) != nullptr ? one.cell(*row) : Cell());
    }
    for (const SweepTimeColumn& column : times.subspan(1)) time_cell(column);
    // With a machine file, the NPUs are those of the job, and links are unknown.
    cells.push_back(row->npus > 0 ? Cell(row->npus) : Cell());
    cells.push_back(ToCell(row->bandwidth));
    if (priced) cells.push_back(ToCell(row->cost));
    if (has_rank_seconds) cells.push_back(ToCell(row->rank_seconds()));
    if (has_energy) cells.push_back(ToCell(row->energy()));
    if (marked) cells.push_back(row->is_best ? Cell("best") : Cell());
  }
  return table;
}

Table RankedTable(const SweepResults& results) {
  const SweepOrder order = OrderOf(results);
  std::vector<const SweepRow*> ranking = Ranking(results.rows, order);
  std::erase_if(ranking, [](const SweepRow* row) { return row->is_excluded(); });
  Table table = RowsTable(results, ranking, /*whole=*/true);
  if (std::ranges::none_of(results.rows, IsDone)) return table;
  table.title = order == SweepOrder::kStep ? std::string("Points, fastest first")
                                           : fmt::format("Points by {}, best first", Title(order));
  const bool some_exceed = std::ranges::any_of(
      results.rows, [](const SweepRow& row) { return row.is_done() && row.fits() == false; });
  if (some_exceed) table.title += "; points that exceed the memory last";
  return table;
}

// Removes columns that are not informative in a text: states if all points are done, times that are
// always 0, parts of memory, and figures of plans that are unknown or equal for all.
Table ShortTable(Table table) {
  std::vector<std::string> details;
  std::vector<std::string> of_plans;
  for (const PlanColumn& one : PlanColumns("")) {
    (one.is_short ? of_plans : details).push_back(one.column.key);
  }
  const bool has_plans =
      std::ranges::find(table.columns, "items_per_s", &Table::Column::key) != table.columns.end();
  const auto is_one_of = [](const std::vector<std::string>& keys, const std::string& key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  for (size_t i = table.columns.size(); i-- > 0;) {
    const Table::Column& column = table.columns[i];
    const auto all_are = [&](const Cell& usual) {
      return std::ranges::all_of(table.rows, [&](const std::vector<Cell>& row) {
        return row[i] == usual || (row[i] == Cell() && column.key != "state");
      });
    };
    bool is_dull = false;
    if (column.key == "state") {
      is_dull = all_are(Cell(std::string(Name(SweepOutcome::State::kDone))));
    } else if (column.unit == Unit::kTime) {
      is_dull = all_are(Cell(int64_t{0}));
    } else if (is_one_of(details, column.key)) {
      is_dull = true;
    } else if (is_one_of(of_plans, column.key)) {
      is_dull = all_are(column.key == "bubble" ? Cell(0.0) : Cell());
    } else if (has_plans && (column.key == "npus" || column.key == "bandwidth_gb_s")) {
      is_dull = table.rows.size() > 1 && all_are(table.rows.front()[i]);
    }
    if (!is_dull) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

// Returns the best point for each value of each axis.
Table BestTable(const SweepResults& results) {
  const std::vector<const SweepRow*> ranking = Ranking(results.rows, OrderOf(results));
  Table table{.key = "best_of",
              .title = "Best point for each value",
              .columns = {{"axis", "axis"},
                          {"value", "value"},
                          {"point", "point", Unit::kCount},
                          {"step_ns", "step", Unit::kTime}},
              .rows = {}};
  for (size_t axis = 0; axis < results.axes.size(); ++axis) {
    std::vector<std::string> values;
    std::map<std::string, const SweepRow*> best;
    for (const SweepRow* row : ranking) best.emplace(row->labels[axis], row);
    for (const SweepRow& row : results.rows) {
      const bool is_new = std::ranges::find(values, row.labels[axis]) == values.end();
      if (is_new) values.push_back(row.labels[axis]);
    }
    for (const std::string& value : values) {
      const SweepRow& row = *best[value];
      if (!IsDone(row)) continue;
      table.rows.push_back({results.axes[axis], value, CountCell(row.point + 1), StepOf(row)});
    }
  }
  return table;
}

Page::Section AxisSection(const SweepResults& results) {
  Page::Section section{
      .key = "axes",
      .title = "Axes",
      .about = "Step time of the best point for each value, over all values of the other axes."};
  Table best = BestTable(results);
  for (const std::string& axis : results.axes) {
    section.charts.push_back(Bars(best, {.title = axis,
                                         .categories = {"value"},
                                         .values = {"step_ns"},
                                         .series = {},
                                         .where = {{"axis", axis}}}));
  }
  section.tables.push_back(std::move(best));
  return section;
}

// Adds charts of step time against each other measure of the front.
void AddFrontCharts(const SweepResults& results, const Table& points, Page::Section& section) {
  for (const SweepMeasure measure : results.measures) {
    std::string over;
    switch (measure) {
      case SweepMeasure::kStep: continue;
      case SweepMeasure::kExposed: over = "exposed_ns"; break;
      case SweepMeasure::kCost: over = "cost"; break;
      case SweepMeasure::kBandwidth: over = "bandwidth_gb_s"; break;
      case SweepMeasure::kNpus: over = "npus"; break;
      case SweepMeasure::kThroughput: over = "items_per_s"; break;
      case SweepMeasure::kMemory: over = "memory_bytes"; break;
      case SweepMeasure::kRankSeconds: over = "rank_seconds"; break;
      case SweepMeasure::kEnergy: over = "energy_joules"; break;
    }
    Chart chart = Scatter(points, {.title = fmt::format("Step time and {}", Name(measure)),
                                   .names = results.axes,
                                   .over = over,
                                   .value = "step_ns",
                                   .series = "best"});
    for (Chart::Series& series : chart.series) {
      series.name = series.name == "best" ? "Pareto front" : "others";
    }
    section.charts.push_back(std::move(chart));
  }
}

// Returns the numbers of points that violate constraints, by reason.
std::map<std::string, uint64_t> ExclusionsOf(const SweepResults& results) {
  std::map<std::string, uint64_t> reasons;
  for (const SweepRow& row : results.rows) {
    if (row.is_excluded()) ++reasons[row.outcome->why];
  }
  return reasons;
}

std::string ExclusionsText(const SweepResults& results) {
  std::string text;
  for (const auto& [reason, count] : ExclusionsOf(results)) {
    text += fmt::format("excluded {}: {}\n", FormatCount(count, "point"), reason);
  }
  return text;
}

Json PlansJson(const SweepPlans& plans) {
  Json refusals = Json::array();
  for (const PlanRefusals& one : plans.refusals) {
    refusals.push_back({{"reason", one.reason},
                        {"combinations", one.count},
                        {"example", one.example.empty() ? Json(nullptr) : Json(one.example)}});
  }
  return {{"combinations", plans.combinations},
          {"kept", plans.kept},
          {"left_out", std::move(refusals)}};
}

// Returns "" without [[plans]].
std::string PlansText(const SweepResults& results) {
  if (!results.plans) return "";
  const SweepPlans& plans = *results.plans;
  std::string text = fmt::format("plans: {} of {}\n", FormatCount(plans.kept),
                                 FormatCount(plans.combinations, "combination"));
  for (const PlanRefusals& one : plans.refusals) {
    text += fmt::format("  left out {}: {}{}\n", FormatCount(one.count), one.reason,
                        one.example.empty() ? "" : fmt::format(" ({})", one.example));
  }
  return text;
}

}  // namespace

Table SweepPointTable(const SweepResults& results) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : results.rows) rows.push_back(&row);
  return RowsTable(results, rows, /*whole=*/true);
}

Table SweepFrontTable(const SweepResults& results) {
  std::vector<const SweepRow*> rows = Ranking(results.rows, OrderOf(results));
  std::erase_if(rows, [](const SweepRow* row) { return !row->is_best; });
  std::string of;
  for (const SweepMeasure measure : results.measures) {
    of += fmt::format("{}{}", of.empty() ? "" : ", ", Name(measure));
  }
  Table table = RowsTable(results, rows, /*whole=*/false);
  table.key = "front";
  table.title = "Pareto front of " + of;
  return table;
}

Table SweepNoteTable(const SweepResults& results) {
  Table table{.key = "notes",
              .title = "Notes",
              .columns = {{"note", "note"}, {"points", "points", Unit::kCount}},
              .rows = {}};
  std::map<std::string, size_t> index;
  for (const SweepRow& row : results.rows) {
    if (!row.outcome) continue;
    for (const std::string& note : row.outcome->notes) {
      const auto [at, is_new] = index.emplace(note, table.rows.size());
      if (is_new) table.rows.push_back({note, int64_t{0}});
      ++std::get<int64_t>(table.rows[at->second][1]);
    }
  }
  return table;
}

Table SweepFailureTable(const SweepResults& results) {
  Table table{.key = "not_done",
              .title = "Not done",
              .columns = {{"point", "point", Unit::kCount}, {"state", "state"}, {"why", "why"}},
              .rows = {}};
  for (const SweepRow& row : results.rows) {
    if (!row.outcome || IsDone(row) || row.is_excluded()) continue;
    table.rows.push_back(
        {CountCell(row.point + 1), std::string(Name(row.outcome->state)), row.outcome->why});
  }
  return table;
}

std::string SweepText(const SweepResults& results, size_t top) {
  std::string text = fmt::format("{}: {}", results.path, FormatCount(results.points, "point"));
  if (results.rows.size() != results.points) {
    text += fmt::format(", {} of them in this part", FormatCount(results.rows.size()));
  }
  text += "\n" + PlansText(results) + ExclusionsText(results) +
          ToText(ShortTable(RankedTable(results)), top);
  if (!results.measures.empty()) text += ToText(ShortTable(SweepFrontTable(results)), top);
  for (const std::vector<Cell>& row : SweepNoteTable(results).rows) {
    text += fmt::format("note: {} ({})\n", ToText(row[0], Unit::kText),
                        FormatCount(static_cast<uint64_t>(std::get<int64_t>(row[1])), "point"));
  }
  const Table failures = SweepFailureTable(results);
  if (!failures.rows.empty()) {
    text += "Not done\n";
    for (const std::vector<Cell>& row : failures.rows) {
      text += fmt::format("  point {}: {}: {}\n", ToText(row[0], Unit::kCount),
                          ToText(row[1], Unit::kText), ToText(row[2], Unit::kText));
    }
  }
  return text;
}

Json SweepJson(const SweepResults& results) {
  Json measures = Json::array();
  for (const SweepMeasure measure : results.measures) measures.push_back(Name(measure));
  Json ranking = Json::array();
  for (const SweepRow* row : Ranking(results.rows, OrderOf(results))) {
    if (row->is_done()) ranking.push_back(row->point + 1);
  }
  Json json = {{"format", "etude-sweep"},
               {"version", 1},
               {"etude", kVersion},
               {"spec", results.path},
               {"axes", results.axes},
               {"points_in_all", results.points},
               {"pareto", std::move(measures)},
               {"ranked_by", Name(OrderOf(results))},
               {"ranking", std::move(ranking)}};
  if (results.plans) json["plans"] = PlansJson(*results.plans);
  if (results.is_constrained) {
    Json& rows = json["excluded"] = Json::array();
    for (const auto& [reason, count] : ExclusionsOf(results)) {
      rows.push_back({{"reason", reason}, {"points", count}});
    }
  }
  json["points"] = ToJson(SweepPointTable(results));
  json["notes"] = ToJson(SweepNoteTable(results));
  json["not_done"] = ToJson(SweepFailureTable(results));
  return json;
}

Page SweepPage(const SweepResults& results) {
  Page page{
      .title = "Sweep", .inputs = {results.path}, .health = {}, .sections = {}, .remarks = {}};
  Table points = RankedTable(results);
  Page::Section section{
      .key = "points",
      .title = "Points",
      .about = "Simulated step time of each point: the time until the last rank ends."};
  const auto done = static_cast<int64_t>(std::ranges::count_if(results.rows, IsDone));
  section.facts.push_back({"points", CountCell(results.rows.size()), Unit::kCount});
  section.facts.push_back({"done", done, Unit::kCount});
  if (results.is_constrained) {
    section.facts.push_back(
        {"excluded by constraints",
         std::ranges::count_if(results.rows, [](const SweepRow& row) { return row.is_excluded(); }),
         Unit::kCount});
  }
  if (done > 0) {
    const SweepRow& best = *Ranking(results.rows, OrderOf(results)).front();
    section.facts.push_back({"step time of the best points", StepOf(best), Unit::kTime});
  }
  AddFrontCharts(results, points, section);
  std::vector<std::string> names = results.axes;
  if (names.empty()) names = {"point"};
  section.charts.push_back(Bars(
      points, {.title = "Time of a step by activity",
               .kind = Chart::Kind::kStacked,
               .categories = names,
               .values = {"compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"},
               .series = {},
               .where = {}}));
  section.tables.push_back(std::move(points));
  if (!results.measures.empty()) section.tables.push_back(SweepFrontTable(results));
  section.tables.push_back(SweepNoteTable(results));
  section.tables.push_back(SweepFailureTable(results));
  page.sections.push_back(std::move(section));
  page.sections.push_back(AxisSection(results));
  return page;
}

}  // namespace etude
