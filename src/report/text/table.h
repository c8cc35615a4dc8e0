#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/units.h"

namespace etude {

// Type of a column. Determines its readable form; JSON and CSV contain plain figures.
enum class Unit : uint8_t {
  kText,
  kCount,   // integer
  kTime,    // integer, nanoseconds
  kBytes,   // integer
  kRate,    // bytes per second
  kShare,   // 0..1
  kChange,  // signed share
  kNumber,  // any other figure
};

// A cell: a value of its column's unit, or unknown (shown as "–", null in JSON, empty in CSV).
using Cell = std::variant<std::monostate, std::string, int64_t, double>;
inline Cell ToCell(std::optional<Nanos> time) { return time ? Cell(time->count) : Cell(); }
inline Cell ToCell(std::optional<Bytes> bytes) { return bytes ? Cell(bytes->count) : Cell(); }
inline Cell ToCell(std::optional<double> number) { return number ? Cell(*number) : Cell(); }
// Returns part / whole; unknown if the whole is 0.
inline Cell ShareCell(Nanos part, Nanos whole) {
  if (whole.count <= 0) return {};
  return static_cast<double>(part.count) / static_cast<double>(whole.count);
}
inline Cell CountCell(uint64_t count) { return static_cast<int64_t>(count); }

// Figures in rows: the result of an inspection, as text for readers, JSON and CSV for programs.
struct Table {
  struct Column {
    std::string key;    // in JSON and CSV, with its unit as suffix: "total_ns", "bytes", "share"
    std::string title;  // for readers
    Unit unit = Unit::kText;
  };

  std::string key;    // in JSON, and for `--table`
  std::string title;  // for readers
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // one cell per column
  uint64_t left_out = 0;                // number of rows cut off at the end
};

// Joins tables of one key and equal columns, with a first column of `names`. At most `most_rows`
// rows per table (0: all).
Table JoinTables(const std::vector<Cell>& names, const std::vector<const Table*>& tables,
                 size_t most_rows);

// Returns a readable figure, "1.5 ms" or "–"; texts are unchanged.
std::string ToText(const Cell& cell, Unit unit);
// Returns the plain figure; null if unknown.
nlohmann::ordered_json ToJson(const Cell& cell);
// Returns "text", "count", "time", …: stable, appears in --json.
std::string_view Name(Unit unit);

// Returns title, headings and the first `most_rows` rows (0: all). A last line counts the omitted
// rows; long texts are cut. "" for a table without rows.
std::string ToText(const Table& table, size_t most_rows = 0);
// Like ToText, for a table requested by name: states that there are no rows.
std::string ToTextOfWanted(const Table& table, size_t most_rows = 0);
// Returns RFC 4180 text with the keys in the first line.
std::string ToCsv(const Table& table);
// Returns an array with an object per row.
nlohmann::ordered_json ToJson(const Table& table);

}  // namespace etude
