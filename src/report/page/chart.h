#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/text/table.h"

namespace etude {

// A picture of figures, as data.
struct Chart {
  enum class Kind : uint8_t {
    kBars,       // horizontal, those of one category beside each other
    kStacked,    // horizontal, those of one category in a row
    kSteps,      // lines over time that change at once
    kPoints,     // single points over a count
    kIntervals,  // of each category a value, its interval and, around 0, how large it may be
    kScatter,    // points of two figures each
  };
  struct Series {
    std::string name;
    std::vector<Cell> values;    // by category, or parallel to `times`
    std::vector<int64_t> times;  // kSteps: nanoseconds; kPoints: what they stand over
    std::vector<Cell> lows;      // kIntervals: ends, unknown where infinite
    std::vector<Cell> highs;
    std::vector<Cell> bars;   // kIntervals: the largest value to either side, if there is one
    std::vector<Cell> overs;  // kScatter: the other figure,
    std::vector<std::string> names;  // and what the point is called
  };

  std::string title;
  Kind kind = Kind::kBars;
  Unit unit = Unit::kCount;             // of the values
  std::vector<std::string> categories;  // of bars, from top to bottom
  std::vector<Series> series;
  std::string note;               // what it leaves out; "" if nothing
  Unit over_unit = Unit::kCount;  // kScatter: of the other figures,
  std::string over_title;         // and what they are
};

// Which rows and columns of a table make a bar chart; columns by key.
struct BarChoice {
  std::string title;
  Chart::Kind kind = Chart::Kind::kBars;
  std::vector<std::string> categories;  // columns whose texts together name a bar
  std::vector<std::string> values;      // a series each, or with `series` the only one
  std::string series;                   // column whose texts name the series; "": none
  std::vector<std::pair<std::string, std::string>> where;  // column, text that it must have
  bool largest_first = false;                              // else as in the table
  size_t most = 24;                                        // bars
};

// Values of rows with one name are summed. Without a known value: a chart without series.
Chart Bars(const Table& table, const BarChoice& choice);

// Lines over time: one per text of `series`; of more than `most` points of a line the highest of
// each stretch of time stays, so that peaks do. Rows without a time count for nothing.
struct StepChoice {
  std::string title;
  std::vector<std::string> series;  // columns whose texts together name a line
  std::string time;
  std::string value;
  size_t most = 2000;
};
Chart Steps(const Table& table, const StepChoice& choice);

// Points over a column of counts: a series for each column of `values`.
struct PointChoice {
  std::string title;
  std::string over;
  std::vector<std::string> values;
};
Chart Points(const Table& table, const PointChoice& choice);

// Rows with a known value, by name. Without any: a chart without series.
struct IntervalChoice {
  std::string title;
  std::string category;
  std::string value;
  std::string low;
  std::string high;
  std::string bar;
};
Chart Intervals(const Table& table, const IntervalChoice& choice);

// Points of two columns: one for each row with both figures, in a series for each text of `series`.
struct ScatterChoice {
  std::string title;
  std::vector<std::string> names;  // columns whose texts together name a point
  std::string over;
  std::string value;
  std::string series;
  size_t most = 5000;  // points
};
Chart Scatter(const Table& table, const ScatterChoice& choice);

nlohmann::ordered_json ToJson(const Chart& chart);

}  // namespace etude
