#include "src/report/text/table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

constexpr std::string_view kUnknown = "–";

// Names of kernels can have hundreds of characters.
constexpr size_t kMostPoints = 60;

std::string ShortCell(const Cell& cell, Unit unit) {
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? ShortName(*text, kMostPoints) : ToText(cell, unit);
}

// Returns whether spreadsheets treat the text as a formula, which may run programs: it starts like
// one and is not a number.
bool IsFormula(std::string_view text) {
  constexpr std::string_view kBegin = "=+-@\t\r";
  if (text.empty() || kBegin.find(text.front()) == std::string_view::npos) return false;
  return !ParseDecimal(text.substr(text.front() == '+' ? 1 : 0));
}

// Prefixes a possible formula with an apostrophe, so that it stays a text.
std::string CsvText(std::string text) {
  if (IsFormula(text)) text.insert(text.begin(), '\'');
  return CsvQuoted(text);
}

std::string CsvCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return CsvText(*text);
  if (const auto* number = std::get_if<double>(&cell)) {
    return fmt::format("{}", WithoutNoise(*number));
  }
  if (const auto* count = std::get_if<int64_t>(&cell)) return std::to_string(*count);
  return {};
}

}  // namespace

Table JoinTables(const std::vector<Cell>& names, const std::vector<const Table*>& tables,
                 size_t most_rows) {
  const Table& first = *tables.front();
  Table joined{.key = first.key, .title = first.title, .columns = {{"rank", "rank", Unit::kText}}};
  joined.columns.insert(joined.columns.end(), first.columns.begin(), first.columns.end());
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto& rows = tables[i]->rows;
    const size_t shown = most_rows == 0 ? rows.size() : std::min(most_rows, rows.size());
    joined.left_out += tables[i]->left_out + rows.size() - shown;
    for (size_t row = 0; row < shown; ++row) {
      std::vector<Cell>& cells = joined.rows.emplace_back();
      cells.push_back(names[i]);
      cells.insert(cells.end(), rows[row].begin(), rows[row].end());
    }
  }
  return joined;
}

std::string ToText(const Cell& cell, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<double>(&cell)) {
    if (unit == Unit::kRate) return FormatRate(*number);
    if (unit == Unit::kChange) return FormatError(*number);
    return unit == Unit::kShare ? FormatShare(*number) : FormatNumber(*number);
  }
  const auto* count = std::get_if<int64_t>(&cell);
  if (count == nullptr) return std::string(kUnknown);
  switch (unit) {
    case Unit::kTime: return FormatTime(Nanos{*count});
    case Unit::kBytes: return FormatBytes(Bytes{*count});
    case Unit::kCount:
      return *count < 0 ? std::to_string(*count) : FormatCount(static_cast<uint64_t>(*count));
    case Unit::kText:
    case Unit::kRate:
    case Unit::kShare:
    case Unit::kChange:
    case Unit::kNumber: break;
  }
  return std::to_string(*count);
}

nlohmann::ordered_json ToJson(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<double>(&cell)) return WithoutNoise(*number);
  if (const auto* count = std::get_if<int64_t>(&cell)) return *count;
  return nullptr;
}

std::string_view Name(Unit unit) {
  switch (unit) {
    case Unit::kText: return "text";
    case Unit::kCount: return "count";
    case Unit::kTime: return "time";
    case Unit::kBytes: return "bytes";
    case Unit::kRate: return "rate";
    case Unit::kShare: return "share";
    case Unit::kChange: return "change";
    case Unit::kNumber: return "number";
  }
  return "text";
}

std::string ToText(const Table& table, size_t most_rows) {
  if (table.rows.empty()) return {};
  std::vector<TextTable::Align> aligns;
  std::vector<std::string> titles;
  for (const Table::Column& column : table.columns) {
    aligns.push_back(column.unit == Unit::kText ? TextTable::Align::kLeft
                                                : TextTable::Align::kRight);
    titles.push_back(column.title);
  }
  TextTable lines(std::move(aligns));
  lines.Row(std::move(titles));
  const size_t shown = most_rows == 0 ? table.rows.size() : std::min(most_rows, table.rows.size());
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string> cells;
    for (size_t j = 0; j < table.columns.size(); ++j) {
      cells.push_back(ShortCell(table.rows[i][j], table.columns[j].unit));
    }
    lines.Row(std::move(cells));
  }
  std::string text = table.title + "\n" + lines.Text();
  const uint64_t left_out = table.left_out + table.rows.size() - shown;
  if (left_out != 0) text += fmt::format("  and {} more\n", FormatCount(left_out));
  return text;
}

std::string ToTextOfWanted(const Table& table, size_t most_rows) {
  return table.rows.empty() ? table.title + ": none\n" : ToText(table, most_rows);
}

std::string ToCsv(const Table& table) {
  std::string text;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    text += (i == 0 ? "" : ",") + CsvText(table.columns[i].key);
  }
  text += "\r\n";
  for (const std::vector<Cell>& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + CsvCell(row[i]);
    text += "\r\n";
  }
  return text;
}

nlohmann::ordered_json ToJson(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& row : table.rows) {
    nlohmann::ordered_json object;
    for (size_t i = 0; i < row.size(); ++i) object[table.columns[i].key] = ToJson(row[i]);
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace etude
