#include "src/report/sweep_tables.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/version.h"
#include "src/report/format.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

bool IsDone(const SweepRow& row) {
  return row.outcome && row.outcome->state == SweepOutcome::State::kDone;
}

int64_t StepOf(const SweepRow& row) {
  return IsDone(row) ? row.outcome->times->step : std::numeric_limits<int64_t>::max();
}

// By step time, then by number; those that are not done last.
std::vector<const SweepRow*> FastestFirst(const SweepResults& results) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : results.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, {}, [](const SweepRow* row) { return StepOf(*row); });
  return rows;
}

// `whole`: with where their time goes, and whether points are done and of the front.
Table RowsTable(const SweepResults& results, const std::vector<const SweepRow*>& rows, bool whole) {
  Table table{.key = "points", .title = "Points", .columns = {}, .rows = {}};
  table.columns.push_back({"point", "point", Unit::kCount});
  for (const std::string& axis : results.axes) table.columns.push_back({axis, axis, Unit::kText});
  const bool priced =
      std::ranges::any_of(rows, [](const SweepRow* row) { return row->cost.has_value(); });
  if (whole) table.columns.push_back({"state", "state", Unit::kText});
  const std::span<const SweepTimeColumn> times =
      std::span(kSweepTimes).first(whole ? std::size(kSweepTimes) : 1);
  for (const SweepTimeColumn& column : times) {
    table.columns.push_back({column.key, column.title, Unit::kTime});
  }
  table.columns.push_back({"npus", "NPUs", Unit::kCount});
  table.columns.push_back({"bandwidth_gb_s", "links (GB/s)", Unit::kNumber});
  if (priced) table.columns.push_back({"cost", "cost", Unit::kNumber});
  const bool marked = whole && !results.measures.empty();
  if (marked) table.columns.push_back({"best", "Pareto", Unit::kText});
  for (const SweepRow* row : rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.push_back(CountCell(row->point + 1));
    for (const std::string& label : row->labels) cells.push_back(label);
    if (whole) {
      cells.push_back(row->outcome ? Cell(std::string(Name(row->outcome->state))) : Cell());
    }
    for (const SweepTimeColumn& column : times) {
      cells.push_back(IsDone(*row) ? Cell((*row->outcome->times).*column.time) : Cell());
    }
    cells.push_back(row->npus);
    cells.push_back(row->bandwidth);
    if (priced) cells.push_back(ToCell(row->cost));
    if (marked) cells.push_back(row->is_best ? Cell("best") : Cell());
  }
  return table;
}

Table FastestTable(const SweepResults& results) {
  Table table = RowsTable(results, FastestFirst(results), /*whole=*/true);
  if (std::ranges::any_of(results.rows, IsDone)) table.title = "Points, the fastest first";
  return table;
}

// Without states where all points are done, and times that are 0 in all of them.
Table ShortTable(Table table) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    const bool is_state = table.columns[i].key == "state";
    if (!is_state && table.columns[i].unit != Unit::kTime) continue;
    const Cell usual =
        is_state ? Cell(std::string(Name(SweepOutcome::State::kDone))) : Cell(int64_t{0});
    const bool is_dull = std::ranges::all_of(table.rows, [&](const std::vector<Cell>& row) {
      return row[i] == usual || (!is_state && row[i] == Cell());
    });
    if (!is_dull) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

// Of each value of each axis the fastest point.
Table BestTable(const SweepResults& results) {
  Table table{.key = "best_of",
              .title = "Fastest point of each value",
              .columns = {{"axis", "axis"},
                          {"value", "value"},
                          {"point", "point", Unit::kCount},
                          {"step_ns", "step", Unit::kTime}},
              .rows = {}};
  for (size_t axis = 0; axis < results.axes.size(); ++axis) {
    std::vector<std::string> values;
    std::map<std::string, const SweepRow*> best;
    for (const SweepRow& row : results.rows) {
      const auto [found, is_new] = best.emplace(row.labels[axis], &row);
      if (is_new) values.push_back(row.labels[axis]);
      if (StepOf(row) < StepOf(*found->second)) found->second = &row;
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
  Page::Section section{.key = "axes",
                        .title = "Axes",
                        .about =
                            "How fast a step is with each value, at best over all that the "
                            "other axes say."};
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

// Step time against each other measure of the front.
void AddFrontCharts(const SweepResults& results, const Table& points, Page::Section& section) {
  for (const SweepMeasure measure : results.measures) {
    std::string over;
    switch (measure) {
      case SweepMeasure::kStep: continue;
      case SweepMeasure::kExposed: over = "exposed_ns"; break;
      case SweepMeasure::kCost: over = "cost"; break;
      case SweepMeasure::kBandwidth: over = "bandwidth_gb_s"; break;
      case SweepMeasure::kNpus: over = "npus"; break;
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

}  // namespace

Table SweepPointTable(const SweepResults& results) {
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : results.rows) rows.push_back(&row);
  return RowsTable(results, rows, /*whole=*/true);
}

Table SweepFrontTable(const SweepResults& results) {
  std::vector<const SweepRow*> rows = FastestFirst(results);
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
    if (!row.outcome || IsDone(row)) continue;
    table.rows.push_back(
        {CountCell(row.point + 1), std::string(Name(row.outcome->state)), row.outcome->why});
  }
  return table;
}

std::string SweepText(const SweepResults& results, size_t top) {
  std::string text = fmt::format("{}: {}", results.path, FormatCount(results.points, "point"));
  if (results.rows.size() != results.points) {
    text += fmt::format(", {} of them here", FormatCount(results.rows.size()));
  }
  text += "\n" + ToText(ShortTable(FastestTable(results)), top);
  if (!results.measures.empty()) text += ToText(SweepFrontTable(results), top);
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
  return {{"format", "etude-sweep"},
          {"version", 1},
          {"etude", kVersion},
          {"spec", results.path},
          {"axes", results.axes},
          {"points_in_all", results.points},
          {"pareto", std::move(measures)},
          {"points", ToJson(SweepPointTable(results))},
          {"notes", ToJson(SweepNoteTable(results))},
          {"not_done", ToJson(SweepFailureTable(results))}};
}

Page SweepPage(const SweepResults& results) {
  Page page{
      .title = "Sweep", .inputs = {results.path}, .health = {}, .sections = {}, .remarks = {}};
  Table points = FastestTable(results);
  Page::Section section{.key = "points",
                        .title = "Points",
                        .about =
                            "Simulated step time of each point of the sweep: until the last "
                            "rank is done."};
  const auto done = static_cast<int64_t>(std::ranges::count_if(results.rows, IsDone));
  section.facts.push_back({"points", CountCell(results.rows.size()), Unit::kCount});
  section.facts.push_back({"done", done, Unit::kCount});
  if (done > 0) {
    section.facts.push_back({"fastest", StepOf(*FastestFirst(results).front()), Unit::kTime});
  }
  AddFrontCharts(results, points, section);
  std::vector<std::string> names = results.axes;
  if (names.empty()) names = {"point"};
  section.charts.push_back(Bars(
      points, {.title = "Where the time of a step goes",
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
