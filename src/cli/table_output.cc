#include "src/cli/table_output.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/report/format.h"
#include "src/report/health_output.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Cell> Names(const std::vector<Inspected>& found) {
  std::vector<Cell> names;
  for (const Inspected& one : found) {
    const auto same = [&](const Inspected& other) { return other.rank == one.rank; };
    const bool unique = one.rank && std::ranges::count_if(found, same) == 1;
    names.push_back(unique ? Cell(*one.rank) : Cell(one.path));
  }
  return names;
}

// The tables number `index` of all traces as one, with at most `most_rows` rows of each (0: all).
// Returns how many rows that leaves out.
uint64_t Join(const std::vector<Inspected>& found, size_t index, size_t most_rows, Table& table) {
  const std::vector<Cell> names = Names(found);
  const Table& first = found.front().tables[index];
  table = {.key = first.key, .title = first.title, .columns = {{"rank", "rank", Unit::kText}}};
  table.columns.insert(table.columns.end(), first.columns.begin(), first.columns.end());
  uint64_t left_out = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& rows = found[i].tables[index].rows;
    const size_t shown = most_rows == 0 ? rows.size() : std::min(most_rows, rows.size());
    left_out += rows.size() - shown;
    for (size_t row = 0; row < shown; ++row) {
      std::vector<Cell>& cells = table.rows.emplace_back();
      cells.push_back(names[i]);
      cells.insert(cells.end(), rows[row].begin(), rows[row].end());
    }
  }
  return left_out;
}

}  // namespace

void TableOutput::Declare(Options& options, std::vector<std::string> tables) {
  options.Flag("--json", &json_, "print JSON");
  options.Flag("--csv", &csv_, "print one table as CSV");
  std::string help = "print this table only:";
  for (const std::string& table : tables) help += " " + table;
  tables_ = std::move(tables);
  options.Value("--table", &table_, "NAME", help);
  options.Value("--top", &top_, "N", "rows to print of each table and rank as text; 0 for all",
                {.least = 0});
}

Status TableOutput::Check() const {
  if (json_ && csv_) return MakeError(ErrorCode::kUsage, "--json and --csv exclude each other");
  if (table_.empty() || std::ranges::count(tables_, table_) != 0) return {};
  const std::string near = Nearest(table_, tables_);
  return MakeError(ErrorCode::kUsage, "--table: unknown table '" + table_ + "'" +
                                          (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

void TableOutput::Print(std::string_view format, const std::vector<Inspected>& found,
                        const Console& console) const {
  if (json_) {
    console.Print(JsonText(format, found));
  } else if (csv_) {
    const std::string& wanted = table_.empty() ? tables_.front() : table_;
    for (size_t i = 0; i < found.front().tables.size(); ++i) {
      if (found.front().tables[i].key != wanted) continue;
      Table table;
      Join(found, i, 0, table);
      console.PrintData(ToCsv(table));
    }
  } else {
    console.Print(Text(found));
  }
}

std::string TableOutput::Text(const std::vector<Inspected>& found) const {
  std::string text;
  const auto most_rows = static_cast<size_t>(top_);
  for (size_t i = 0; i < found.front().tables.size(); ++i) {
    if (!IsWanted(found.front().tables[i])) continue;
    if (found.size() == 1) {
      text += ToText(found.front().tables[i], most_rows);
      continue;
    }
    Table table;
    const uint64_t left_out = Join(found, i, most_rows, table);
    text += ToText(table);
    if (left_out != 0) text += fmt::format("  and {} more\n", FormatCount(left_out));
  }
  for (const Inspected& one : found) {
    const std::string who = found.size() == 1 ? ""
                            : one.rank        ? fmt::format("rank {}: ", *one.rank)
                                              : one.path + ": ";
    for (const std::string& note : one.notes) text += "note: " + who + note + "\n";
    if (one.health.verdict() != Verdict::kGood) text += who + ToText(one.health);
  }
  return text;
}

std::string TableOutput::JsonText(std::string_view format,
                                  const std::vector<Inspected>& found) const {
  Json json = {{"format", format}, {"version", 1}};
  Json traces = Json::array();
  for (const Inspected& one : found) {
    traces.push_back({{"rank", one.rank ? Json(*one.rank) : Json(nullptr)},
                      {"path", one.path},
                      {"notes", one.notes},
                      {"trust", ToJson(one.health)}});
  }
  json["traces"] = std::move(traces);
  for (size_t i = 0; i < found.front().tables.size(); ++i) {
    if (!IsWanted(found.front().tables[i])) continue;
    Table table;
    Join(found, i, 0, table);
    json[table.key] = ToJson(table);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace etude
