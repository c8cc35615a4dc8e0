#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/text/table.h"

namespace etude {

// Data of a chart.
struct Chart {
  enum class Kind : uint8_t {
    kBars,       // horizontal, with the bars of a category side by side
    kStacked,    // horizontal, with the bars of a category stacked
    kSteps,      // step lines over time
    kPoints,     // points over a count
    kIntervals,  // per category a value, its interval and the allowed range around 0
    kScatter,    // points with two figures each
    kParallel,   // a line per series over parallel axes, each with its own unit
  };
  struct Series {
    std::string name;
    std::vector<Cell> values;    // by category or axis, or parallel to `times`
    std::vector<int64_t> times;  // kSteps: ns; kPoints: positions
    std::vector<Cell> lows;      // kIntervals: ends; unknown if infinite
    std::vector<Cell> highs;
    std::vector<Cell> bars;          // kIntervals: maximum deviation to either side, if any
    std::vector<Cell> overs;         // kScatter: horizontal figure
    std::vector<std::string> names;  // kScatter: name of each point
    bool is_line = false;            // kScatter: the points are joined, and have no mark
  };

  struct Axis {
    std::string title;
    Unit unit = Unit::kNumber;
    bool is_log = false;
  };

  std::string title;
  Kind kind = Kind::kBars;
  Unit unit = Unit::kCount;             // of the values
  std::vector<std::string> categories;  // of bars, from top to bottom
  std::vector<Series> series;
  std::string note;               // limitations; "" if none
  Unit over_unit = Unit::kCount;  // kScatter: unit of the horizontal figure
  std::string over_title;         // kScatter: its title
  bool is_log = false;            // kScatter: both axes are logarithmic
  std::vector<Axis> axes;         // kParallel
};

// Rows and columns of a table for a bar chart; columns by key.
struct BarChoice {
  std::string title;
  Chart::Kind kind = Chart::Kind::kBars;
  std::vector<std::string> categories;  // columns whose texts form the name of a bar
  std::vector<std::string> values;      // a series each; with `series` exactly one
  std::string series;                   // column with the series name; "": none
  std::vector<std::pair<std::string, std::string>> where;  // column, required text
  bool largest_first = false;                              // otherwise in the table's order
  size_t most = 24;                                        // bars
};

// Makes a bar chart; values of equally named rows are summed. Without a known value, the chart has
// no series.
Chart Bars(const Table& table, const BarChoice& choice);

// Columns for lines over time, one line per text of `series`. If a line has more than `most`
// points, the maximum of each time interval is kept, so that peaks remain visible. Rows without a
// time are ignored.
struct StepChoice {
  std::string title;
  std::vector<std::string> series;  // columns whose texts form the name of a line
  std::string time;
  std::string value;
  size_t most = 2000;
};
Chart Steps(const Table& table, const StepChoice& choice);

// Columns for points over a count: one series per column of `values`.
struct PointChoice {
  std::string title;
  std::string over;
  std::vector<std::string> values;
};
Chart Points(const Table& table, const PointChoice& choice);

// Columns for intervals by category, of rows with a known value. Without any, the chart has no
// series.
struct IntervalChoice {
  std::string title;
  std::string category;
  std::string value;
  std::string low;
  std::string high;
  std::string bar;
};
Chart Intervals(const Table& table, const IntervalChoice& choice);

// Columns for a scatter chart: a point per row that has both figures, a series per text of
// `series`.
struct ScatterChoice {
  std::string title;
  std::vector<std::string> names;  // columns whose texts form the name of a point
  std::string over;
  std::string value;
  std::string series;
  size_t most = 5000;  // maximum of points
};
Chart Scatter(const Table& table, const ScatterChoice& choice);

// Columns for parallel coordinates: a line per row, an axis per column of `values` with a known
// figure. An axis of other figures than shares is logarithmic if all are positive and the largest
// is at least ten times the smallest. With fewer than two axes, the chart has no series.
struct ParallelChoice {
  std::string title;
  std::string name;  // column with the name of a line
  std::vector<std::string> values;
};
Chart Parallel(const Table& table, const ParallelChoice& choice);

nlohmann::ordered_json ToJson(const Chart& chart);

}  // namespace etude
