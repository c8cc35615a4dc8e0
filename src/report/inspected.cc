#include "src/report/inspected.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"

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

Table JoinTables(const std::vector<Inspected>& found, size_t index, size_t most_rows) {
  std::vector<const Table*> tables;
  for (const Inspected& one : found) tables.push_back(&one.tables[index]);
  return JoinTables(Names(found), tables, most_rows);
}

std::string ToText(const std::vector<Inspected>& found, std::string_view only, size_t most_rows) {
  std::string text;
  for (size_t i = 0; i < found.front().tables.size(); ++i) {
    if (!IsWanted(found.front().tables[i], only)) continue;
    const Table& first = found.front().tables[i];
    const Table table = found.size() == 1 ? first : JoinTables(found, i, most_rows);
    const size_t most = found.size() == 1 ? most_rows : 0;
    text += only.empty() ? ToText(table, most) : ToTextOfWanted(table, most);
  }
  for (const Inspected& one : found) {
    const std::string who = found.size() == 1 ? ""
                            : one.rank        ? fmt::format("rank {}: ", *one.rank)
                                              : one.path + ": ";
    for (const std::string& note : one.notes) text += "note: " + who + note + "\n";
    if (one.health.verdict() != Verdict::kGood) text += who + ShortText(one.health);
  }
  return text;
}

Json ToJson(const std::vector<Inspected>& found, std::string_view format, std::string_view only) {
  Json json = {{"format", format}, {"version", 1}};
  Json traces = Json::array();
  for (const Inspected& one : found) {
    traces.push_back({{"rank", OrNull(one.rank)},
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
