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

// What a column holds, and how people read it; JSON and CSV give the plain figure.
enum class Unit : uint8_t {
  kText,
  kCount,   // integer
  kTime,    // integer, nanoseconds
  kBytes,   // integer
  kRate,    // bytes a second
  kShare,   // 0..1
  kChange,  // a share, to either side
  kNumber,  // any other figure
};

// A cell: unknown (shown as "–", null in JSON, empty in CSV), or a value of its column's unit.
using Cell = std::variant<std::monostate, std::string, int64_t, double>;
inline Cell ToCell(std::optional<Nanos> time) { return time ? Cell(time->count) : Cell(); }
inline Cell ToCell(std::optional<Bytes> bytes) { return bytes ? Cell(bytes->count) : Cell(); }
inline Cell ToCell(std::optional<double> number) { return number ? Cell(*number) : Cell(); }
// Unknown where the whole is nothing.
inline Cell ShareCell(Nanos part, Nanos whole) {
  if (whole.count <= 0) return {};
  return static_cast<double>(part.count) / static_cast<double>(whole.count);
}
inline Cell CountCell(uint64_t count) { return static_cast<int64_t>(count); }

// Figures in rows: the result of an inspection, as text for people, JSON and CSV for programs.
struct Table {
  struct Column {
    std::string key;    // in JSON and CSV, with its unit at the end: "total_ns", "bytes", "share"
    std::string title;  // for people
    Unit unit = Unit::kText;
  };

  std::string key;    // in JSON, and for `--table`
  std::string title;  // for people
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as there are columns
  uint64_t left_out = 0;                // rows that were cut off at the end
};

// Tables of one key and the same columns as one, with a first column that says by `names` which one
// a row is of. At most `most_rows` rows of each (0: all).
Table JoinTables(const std::vector<Cell>& names, const std::vector<const Table*>& tables,
                 size_t most_rows);

// A figure as people read it, "1.5 ms" or "–"; texts are whole.
std::string ToText(const Cell& cell, Unit unit);
// The plain figure, null if unknown.
nlohmann::ordered_json ToJson(const Cell& cell);
// "text", "count", "time", …: stable, appears in --json.
std::string_view Name(Unit unit);

// The first `most_rows` rows (0: all) below the title and the columns' titles; what is left out is
// counted in a last line, long texts are cut. Without rows: "".
std::string ToText(const Table& table, size_t most_rows = 0);
// The same of a table that was asked for by its name: without rows it says so.
std::string ToTextOfWanted(const Table& table, size_t most_rows = 0);
// RFC 4180, keys in the first line.
std::string ToCsv(const Table& table);
// An array with an object per row.
nlohmann::ordered_json ToJson(const Table& table);

}  // namespace etude
