#include "src/report/page/chart.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "src/report/text/format.h"
#include "src/report/text/page_text.h"

namespace etude {
namespace {

size_t ColumnOf(const Table& table, std::string_view key) {
  const auto found = std::ranges::find(table.columns, key, &Table::Column::key);
  return static_cast<size_t>(found - table.columns.begin());
}

// Returns the cell of an optional column.
const Cell& At(const Table& table, const std::vector<Cell>& row, std::string_view key) {
  static const Cell unknown;
  const size_t column = ColumnOf(table, key);
  return column < row.size() ? row[column] : unknown;
}

std::string NameOf(const Table& table, const std::vector<Cell>& row,
                   const std::vector<std::string>& keys) {
  std::string name;
  for (const std::string& key : keys) {
    const size_t column = ColumnOf(table, key);
    if (column >= row.size()) continue;
    std::string text = ToText(row[column], table.columns[column].unit);
    if (key == "rank" && std::holds_alternative<int64_t>(row[column])) text = "rank " + text;
    if (!name.empty() && !text.empty()) name += " · ";
    name += text;
  }
  return name.empty() ? "all" : name;
}

void AddTo(Cell& sum, const Cell& value) {
  if (const auto* count = std::get_if<int64_t>(&value)) {
    const auto* old = std::get_if<int64_t>(&sum);
    sum = old != nullptr ? (Nanos{*old} + Nanos{*count}).count : *count;  // saturating
  } else if (const auto* number = std::get_if<double>(&value)) {
    const auto* old = std::get_if<double>(&sum);
    sum = old != nullptr ? *old + *number : *number;
  }
}

double SizeOf(const Cell& cell) {
  if (const auto* count = std::get_if<int64_t>(&cell)) return static_cast<double>(*count);
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr ? *number : 0;
}

bool Matches(const Table& table, const std::vector<Cell>& row, const BarChoice& choice) {
  return std::ranges::all_of(choice.where, [&](const auto& condition) {
    const auto* text = std::get_if<std::string>(&At(table, row, condition.first));
    return text != nullptr && *text == condition.second;
  });
}

// Sums of a table's rows by category and series, in the order of first occurrence.
class Grid {
 public:
  void Add(const std::string& category, const std::string& series, const Cell& value) {
    if (std::holds_alternative<std::monostate>(value)) return;
    const size_t row = Index(category, categories_, category_index_);
    const size_t column = Index(series, series_, series_index_);
    AddTo(sums_[{row, column}], value);
  }

  void Fill(Chart& chart, bool largest_first, size_t most) const {
    std::vector<double> totals(categories_.size());
    for (const auto& [at, sum] : sums_) totals[at.first] += SizeOf(sum);
    std::vector<size_t> order(categories_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (largest_first) {
      std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return totals[i]; });
      std::erase_if(order, [&](size_t i) { return totals[i] <= 0; });
    }
    if (order.size() > most) {
      chart.note = fmt::format("{} more are in the table", FormatCount(order.size() - most));
      order.resize(most);
    }
    for (const size_t row : order) chart.categories.push_back(categories_[row]);
    for (size_t column = 0; column < series_.size(); ++column) {
      Chart::Series& series = chart.series.emplace_back();
      series.name = series_[column];
      for (const size_t row : order) {
        const auto sum = sums_.find({row, column});
        series.values.push_back(sum == sums_.end() ? Cell() : sum->second);
      }
    }
  }

 private:
  static size_t Index(const std::string& text, std::vector<std::string>& texts,
                      std::map<std::string, size_t>& index) {
    const auto [at, added] = index.emplace(text, texts.size());
    if (added) texts.push_back(text);
    return at->second;
  }

  std::vector<std::string> categories_;
  std::vector<std::string> series_;
  std::map<std::string, size_t> category_index_;
  std::map<std::string, size_t> series_index_;
  std::map<std::pair<size_t, size_t>, Cell> sums_;
};

std::string_view Name(Chart::Kind kind) {
  switch (kind) {
    case Chart::Kind::kBars: return "bars";
    case Chart::Kind::kStacked: return "stacked";
    case Chart::Kind::kSteps: return "steps";
    case Chart::Kind::kPoints: return "points";
    case Chart::Kind::kIntervals: return "intervals";
    case Chart::Kind::kScatter: return "scatter";
    case Chart::Kind::kParallel: return "parallel";
  }
  return "bars";
}

nlohmann::ordered_json CellsJson(const std::vector<Cell>& cells) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Cell& cell : cells) json.push_back(ToJson(cell));
  return json;
}

// Keeps the maximum in each of `most` time intervals. `series` must be ordered by time.
void Thin(Chart::Series& series, size_t most) {
  if (series.times.size() <= most || most == 0) return;
  const int64_t begin = series.times.front();
  const double width =
      std::max(1.0, static_cast<double>((Nanos{series.times.back()} - Nanos{begin}).count) /
                        static_cast<double>(most));
  const auto stretch = [&](int64_t time) {
    return static_cast<uint64_t>(static_cast<double>((Nanos{time} - Nanos{begin}).count) / width);
  };
  Chart::Series kept{.name = series.name};
  for (size_t i = 0; i < series.times.size(); ++i) {
    if (kept.times.empty() || stretch(series.times[i]) != stretch(kept.times.back())) {
      kept.times.push_back(series.times[i]);
      kept.values.push_back(series.values[i]);
    } else if (SizeOf(series.values[i]) > SizeOf(kept.values.back())) {
      kept.values.back() = series.values[i];
    }
  }
  series = std::move(kept);
}

}  // namespace

Chart Bars(const Table& table, const BarChoice& choice) {
  Chart chart{.title = choice.title, .kind = choice.kind};
  Grid grid;
  for (const std::string& key : choice.values) {
    const size_t column = ColumnOf(table, key);
    if (column == table.columns.size()) continue;
    chart.unit = table.columns[column].unit;
    for (const std::vector<Cell>& row : table.rows) {
      if (!Matches(table, row, choice)) continue;
      const std::string series =
          choice.series.empty() ? table.columns[column].title : NameOf(table, row, {choice.series});
      grid.Add(NameOf(table, row, choice.categories), series, row[column]);
    }
  }
  grid.Fill(chart, choice.largest_first, choice.most);
  return chart;
}

Chart Steps(const Table& table, const StepChoice& choice) {
  Chart chart{.title = choice.title, .kind = Chart::Kind::kSteps};
  const size_t value = ColumnOf(table, choice.value);
  if (value == table.columns.size()) return chart;
  chart.unit = table.columns[value].unit;
  std::map<std::string, size_t> index;
  for (const std::vector<Cell>& row : table.rows) {
    const auto* time = std::get_if<int64_t>(&At(table, row, choice.time));
    if (time == nullptr || std::holds_alternative<std::monostate>(row[value])) continue;
    const std::string name = NameOf(table, row, choice.series);
    const auto [at, added] = index.emplace(name, chart.series.size());
    if (added) chart.series.emplace_back().name = name;
    Chart::Series& series = chart.series[at->second];
    // Clocks that go backwards are clamped.
    series.times.push_back(series.times.empty() ? *time : std::max(*time, series.times.back()));
    series.values.push_back(row[value]);
  }
  for (Chart::Series& series : chart.series) Thin(series, choice.most);
  return chart;
}

Chart Points(const Table& table, const PointChoice& choice) {
  Chart chart{.title = choice.title, .kind = Chart::Kind::kPoints};
  for (const std::string& key : choice.values) {
    const size_t column = ColumnOf(table, key);
    if (column == table.columns.size()) continue;
    chart.unit = table.columns[column].unit;
    Chart::Series series{.name = table.columns[column].title};
    for (const std::vector<Cell>& row : table.rows) {
      const auto* over = std::get_if<int64_t>(&At(table, row, choice.over));
      if (over == nullptr || std::holds_alternative<std::monostate>(row[column])) continue;
      series.times.push_back(*over);
      series.values.push_back(row[column]);
    }
    if (!series.values.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart Intervals(const Table& table, const IntervalChoice& choice) {
  Chart chart{.title = choice.title, .kind = Chart::Kind::kIntervals};
  const size_t value = ColumnOf(table, choice.value);
  if (value == table.columns.size()) return chart;
  chart.unit = table.columns[value].unit;
  Chart::Series series{.name = table.columns[value].title};
  for (const std::vector<Cell>& row : table.rows) {
    if (std::holds_alternative<std::monostate>(row[value])) continue;
    chart.categories.push_back(NameOf(table, row, {choice.category}));
    series.values.push_back(row[value]);
    series.lows.push_back(At(table, row, choice.low));
    series.highs.push_back(At(table, row, choice.high));
    series.bars.push_back(At(table, row, choice.bar));
  }
  if (!series.values.empty()) chart.series.push_back(std::move(series));
  return chart;
}

Chart Scatter(const Table& table, const ScatterChoice& choice) {
  Chart chart{.title = choice.title, .kind = Chart::Kind::kScatter};
  const size_t over = ColumnOf(table, choice.over);
  const size_t value = ColumnOf(table, choice.value);
  if (over == table.columns.size() || value == table.columns.size()) return chart;
  chart.unit = table.columns[value].unit;
  chart.over_unit = table.columns[over].unit;
  chart.over_title = table.columns[over].title;
  std::map<std::string, size_t> index;
  size_t points = 0;
  for (const std::vector<Cell>& row : table.rows) {
    const bool is_known = !std::holds_alternative<std::monostate>(row[over]) &&
                          !std::holds_alternative<std::monostate>(row[value]);
    if (!is_known || ++points > choice.most) continue;
    const std::string name = NameOf(table, row, {choice.series});
    const auto [at, added] = index.emplace(name, chart.series.size());
    if (added) chart.series.emplace_back().name = name;
    Chart::Series& series = chart.series[at->second];
    series.values.push_back(row[value]);
    series.overs.push_back(row[over]);
    series.names.push_back(NameOf(table, row, choice.names));
  }
  if (points > choice.most) {
    chart.note = fmt::format("{} more are in the table", FormatCount(points - choice.most));
  }
  return chart;
}

Chart Parallel(const Table& table, const ParallelChoice& choice) {
  Chart chart{.title = choice.title, .kind = Chart::Kind::kParallel};
  std::vector<Chart::Series> lines;
  for (const std::vector<Cell>& row : table.rows) {
    lines.push_back({.name = NameOf(table, row, {choice.name})});
  }
  for (const std::string& key : choice.values) {
    const size_t index = ColumnOf(table, key);
    if (index == table.columns.size()) continue;
    std::vector<double> figures;
    for (const std::vector<Cell>& row : table.rows) {
      if (!std::holds_alternative<std::monostate>(row[index])) {
        figures.push_back(SizeOf(row[index]));
      }
    }
    if (figures.empty()) continue;
    const auto [least, most] = std::ranges::minmax(figures);
    constexpr double kLogFrom = 10;
    chart.axes.push_back({.title = table.columns[index].title,
                          .unit = table.columns[index].unit,
                          .is_log = table.columns[index].unit != Unit::kShare && least > 0 &&
                                    most >= kLogFrom * least});
    for (size_t i = 0; i < table.rows.size(); ++i) {
      lines[i].values.push_back(table.rows[i][index]);
    }
  }
  if (chart.axes.size() > 1) chart.series = std::move(lines);
  return chart;
}

nlohmann::ordered_json ToJson(const Chart& chart) {
  constexpr size_t kName = 1000;  // code points, for tooltips
  nlohmann::ordered_json json = {{"title", chart.title},
                                 {"kind", Name(chart.kind)},
                                 {"unit", Name(chart.unit)},
                                 {"note", chart.note}};
  nlohmann::ordered_json categories = nlohmann::ordered_json::array();
  for (const std::string& name : chart.categories) categories.push_back(VisibleText(name, kName));
  json["categories"] = std::move(categories);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Chart::Series& series : chart.series) {
    nlohmann::ordered_json row = {{"name", VisibleText(series.name, kName)},
                                  {"values", CellsJson(series.values)},
                                  {"times", series.times}};
    if (chart.kind == Chart::Kind::kIntervals) {
      row["lows"] = CellsJson(series.lows);
      row["highs"] = CellsJson(series.highs);
      row["bars"] = CellsJson(series.bars);
    }
    if (chart.kind == Chart::Kind::kScatter) {
      row["overs"] = CellsJson(series.overs);
      nlohmann::ordered_json names = nlohmann::ordered_json::array();
      for (const std::string& name : series.names) names.push_back(VisibleText(name, kName));
      row["names"] = std::move(names);
      if (series.is_line) row["is_line"] = true;
    }
    rows.push_back(std::move(row));
  }
  json["series"] = std::move(rows);
  if (chart.kind == Chart::Kind::kScatter) {
    json["over_unit"] = Name(chart.over_unit);
    json["over_title"] = VisibleText(chart.over_title, kName);
    if (chart.is_log) json["is_log"] = true;
  }
  if (chart.kind == Chart::Kind::kParallel) {
    json["axes"] = nlohmann::ordered_json::array();
    for (const Chart::Axis& axis : chart.axes) {
      json["axes"].push_back({{"title", VisibleText(axis.title, kName)},
                              {"unit", Name(axis.unit)},
                              {"is_log", axis.is_log}});
    }
  }
  return json;
}

}  // namespace etude
