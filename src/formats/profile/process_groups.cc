#include "src/formats/profile/process_groups.h"

#include <simdjson.h>

#include <algorithm>
#include <string>

#include "src/formats/json/json_text.h"
#include "src/formats/profile/comm_facts.h"

namespace etude {
namespace {

using simdjson::dom::element;

std::optional<std::string_view> TextOf(element entry, std::string_view key) {
  std::string_view text;
  if (entry[key].get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<int64_t> NumberOf(element entry, std::string_view key) {
  int64_t number = 0;
  if (entry[key].get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

// Reads a list of numbers, or the text of one.
std::optional<std::vector<int64_t>> RanksOfEntry(element entry) {
  if (const auto text = TextOf(entry, "ranks")) return ParseIntList(*text);
  simdjson::dom::array array;
  if (entry["ranks"].get(array) != simdjson::SUCCESS) return std::nullopt;
  std::vector<int64_t> ranks;
  for (const element item : array) {
    int64_t rank = 0;
    if (item.get(rank) != simdjson::SUCCESS) return std::nullopt;
    ranks.push_back(rank);
  }
  return ranks;
}

std::optional<NumberedGroup> GroupOf(TraceBuilder& builder, element entry) {
  const auto name = TextOf(entry, "pg_name");
  if (!name) return std::nullopt;
  NumberedGroup result;
  result.group.name = builder.Intern(*name);
  if (const auto text = TextOf(entry, "pg_desc")) result.group.description = builder.Intern(*text);
  if (const auto text = TextOf(entry, "backend_config")) {
    result.group.backend = builder.Intern(*text);
  }
  const auto size = NumberOf(entry, "group_size");
  result.group.size = size ? size : NumberOf(entry, "pg_size");
  if (const auto ranks = RanksOfEntry(entry)) result.group.ranks = builder.InternInts(*ranks);
  result.number = NumberOf(entry, "backend_id");
  return result;
}

}  // namespace

std::optional<std::vector<NumberedGroup>> ParseProcessGroups(TraceBuilder& builder,
                                                             std::string_view json) {
  std::string text(json);
  if (text.find('"') == std::string::npos) std::ranges::replace(text, '\'', '"');
  simdjson::dom::parser parser;
  simdjson::dom::array array;
  if (parser.parse(text).get_array().get(array) != simdjson::SUCCESS) return std::nullopt;
  std::vector<NumberedGroup> groups;
  for (const element entry : array) {
    auto group = GroupOf(builder, entry);
    if (!group) return std::nullopt;
    groups.push_back(*std::move(group));
  }
  return groups;
}

void ReadDistributedInfo(TraceBuilder& builder, std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const std::string copy(json);
  if (parser.parse(copy).get_object().get(object) != simdjson::SUCCESS) return;
  // Old files contain texts where newer ones contain values.
  const auto number_of = [&](std::string_view key) -> std::optional<int64_t> {
    int64_t number = 0;
    if (object[key].get(number) == simdjson::SUCCESS) return number;
    std::string_view text;
    if (object[key].get(text) == simdjson::SUCCESS) return JsonInt(text);
    return std::nullopt;
  };
  if (const auto rank = number_of("rank")) builder.info().rank = rank;
  if (const auto size = number_of("world_size")) builder.info().world_size = size;
  simdjson::dom::element groups;
  if (object["pg_config"].get(groups) != simdjson::SUCCESS) return;
  std::string_view text;
  const auto parsed = groups.get(text) == simdjson::SUCCESS
                          ? ParseProcessGroups(builder, text)
                          : ParseProcessGroups(builder, simdjson::minify(groups));
  if (!parsed) {
    builder.stats().Count(Stat::kUnknownValue);
    return;
  }
  for (const NumberedGroup& entry : *parsed) builder.AddProcessGroup(entry.group);
}

}  // namespace etude
