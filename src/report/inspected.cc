#include "src/report/inspected.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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

bool IsWanted(const Table& table, std::string_view only) {
  return only.empty() || only == table.key;
}

}  // namespace

Table JoinTables(const std::vector<Inspected>& found, size_t index, size_t most_rows,
                 uint64_t* left_out) {
  const std::vector<Cell> names = Names(found);
  const Table& first = found.front().tables[index];
  Table table{.key = first.key, .title = first.title, .columns = {{"rank", "rank", Unit::kText}}};
  table.columns.insert(table.columns.end(), first.columns.begin(), first.columns.end());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& rows = found[i].tables[index].rows;
    const size_t shown = most_rows == 0 ? rows.size() : std::min(most_rows, rows.size());
    if (left_out != nullptr) *left_out += rows.size() - shown;
    for (size_t row = 0; row < shown; ++row) {
      std::vector<Cell>& cells = table.rows.emplace_back();
      cells.push_back(names[i]);
      cells.insert(cells.end(), rows[row].begin(), rows[row].end());
    }
  }
  return table;
}

std::string ToText(const std::vector<Inspected>& found, std::string_view only, size_t most_rows) {
  std::string text;
  for (size_t i = 0; i < found.front().tables.size(); ++i) {
    if (!IsWanted(found.front().tables[i], only)) continue;
    if (found.size() == 1) {
      text += ToText(found.front().tables[i], most_rows);
      continue;
    }
    uint64_t left_out = 0;
    text += ToText(JoinTables(found, i, most_rows, &left_out));
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

Json ToJson(const std::vector<Inspected>& found, std::string_view format, std::string_view only) {
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
    if (!IsWanted(found.front().tables[i], only)) continue;
    const Table table = JoinTables(found, i);
    json[table.key] = ToJson(table);
  }
  return json;
}

}  // namespace etude
