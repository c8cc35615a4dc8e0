#include "src/compat/stage/stage_differences_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/report/text/format.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

const stage::QuantityRow& RowOf(stage::Quantity quantity) {
  return stage::QuantityRows()[static_cast<size_t>(quantity)];
}

std::string_view TextOfCause(std::string_view id) {
  const auto causes = stage::Causes();
  const auto found = std::ranges::find(causes, id, &stage::Cause::id);
  return found == causes.end() ? std::string_view() : found->text;
}

std::string WithSign(int64_t amount) {
  return (amount < 0 ? "-" : "+") +
         FormatCount(static_cast<uint64_t>(amount < 0 ? -amount : amount));
}

}  // namespace

std::string ToText(const stage::StageDifferences& differences) {
  using Align = TextTable::Align;
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft});
  int64_t unexplained = 0;
  for (const stage::Difference& one : differences.quantities) {
    const stage::QuantityRow& row = RowOf(one.quantity);
    table.Row({std::string(row.name), "STAGE", FormatCount(static_cast<uint64_t>(one.stage))});
    for (const stage::EvaluatedCorrection& correction : one.corrections) {
      const std::string_view cause = correction.correction.cause;
      table.Row({"", fmt::format("{:>2} {}", cause, TextOfCause(cause)),
                 WithSign(correction.amount), std::string(correction.correction.formula)});
    }
    if (one.rest() != 0) {
      table.Row({"", "not explained", WithSign(one.rest())});
      ++unexplained;
    }
    table.Row(
        {"", fmt::format("ours, {}", row.unit), FormatCount(static_cast<uint64_t>(one.ours))});
  }
  std::string text = "one rank of each pipeline stage, summed\n" + table.Text();
  TextTable names({Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft});
  for (const stage::NamedValue& name : differences.names) {
    names.Row({std::string(name.definition.name), name.value, std::string(name.definition.formula),
               std::string(name.definition.text)});
  }
  text += "names\n" + names.Text();
  return text + (unexplained == 0
                     ? std::string("every difference is explained\n")
                     : fmt::format("differences that are not explained: {}\n", unexplained));
}

nlohmann::ordered_json ToJson(const stage::StageDifferences& differences) {
  Json json = {{"format", "etude-stage-differences"}, {"version", 1}};
  json["quantities"] = Json::array();
  for (const stage::Difference& one : differences.quantities) {
    const stage::QuantityRow& row = RowOf(one.quantity);
    Json quantity = {{"quantity", row.key}, {"unit", row.unit}, {"stage", one.stage}};
    quantity["corrections"] = Json::array();
    for (const stage::EvaluatedCorrection& correction : one.corrections) {
      quantity["corrections"].push_back({{"cause", correction.correction.cause},
                                         {"text", TextOfCause(correction.correction.cause)},
                                         {"formula", correction.correction.formula},
                                         {"amount", correction.amount}});
    }
    quantity["ours"] = one.ours;
    quantity["not_explained"] = one.rest();
    json["quantities"].push_back(std::move(quantity));
  }
  json["names"] = Json::array();
  for (const stage::NamedValue& name : differences.names) {
    json["names"].push_back({{"name", name.definition.name},
                             {"value", name.value},
                             {"formula", name.definition.formula},
                             {"text", name.definition.text}});
  }
  return json;
}

}  // namespace etude
