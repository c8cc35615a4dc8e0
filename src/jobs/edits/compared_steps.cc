#include "src/jobs/edits/compared_steps.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/io/atomic_file.h"
#include "src/formats/json/json_document.h"
#include "src/jobs/output_files.h"
#include "src/jobs/what_if.h"
#include "src/report/tables/measured_table.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

constexpr DocumentKind kStepsDocument{.name = "steps of a job", .format = "etude-steps"};

// Returns a cell of a table that was written as JSON.
Cell CellOf(const JsonMembers& row, const Table::Column& column) {
  const char* key = column.key.c_str();
  switch (column.unit) {
    case Unit::kText: {
      const auto text = row.Text(key);
      return text ? Cell(*text) : Cell();
    }
    case Unit::kShare: return ToCell(row.Number(key));
    default: {
      const auto number = row.Whole(key, INT64_MIN);
      return number ? Cell(*number) : Cell();
    }
  }
}

}  // namespace

Status WriteComparedSteps(const std::optional<ComparedSteps>& compared, const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kStepsFile);
  if (!compared) {
    std::error_code ignored;  // an error shows when the file is read
    std::filesystem::remove(path, ignored);
    return {};
  }
  nlohmann::ordered_json json = {{"format", kStepsDocument.format},
                                 {"version", kStepsDocument.version}};
  json["edits"] = nlohmann::ordered_json::array();
  for (const EditLine& one : compared->edits) {
    json["edits"].push_back({{"edit", one.edit}, {"certainty", one.certainty}, {"text", one.text}});
  }
  json["steps"] = ToJson(compared->steps);
  return ReplaceFile(path, JsonText(json));
}

Result<std::optional<ComparedSteps>> ReadComparedSteps(const std::string& folder,
                                                       const RunContext& context) {
  const std::string path = fmt::format("{}/{}", folder, kStepsFile);
  if (!IsThere(path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::optional<EditedFrom> from, ReadEditedFrom(folder, context));
    if (!from) return std::nullopt;
    const bool is_known = from->recorded_step || from->program_step;
    return ComparedSteps{
        .edits = from->edits,
        .steps = is_known ? MeasuredTable({BeforeEdit(*from)}, {}) : MeasuredTable({}, {})};
  }
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document,
                         ReadDocument(path, kStepsDocument, context));
  Status status;
  const JsonMembers members(path, document, status);
  ComparedSteps compared{.edits = ReadEditLines(members), .steps = MeasuredTable({}, {})};
  for (const JsonMembers& one : members.Objects("steps")) {
    std::vector<Cell>& row = compared.steps.rows.emplace_back();
    for (const Table::Column& column : compared.steps.columns) row.push_back(CellOf(one, column));
  }
  ETUDE_RETURN_IF_ERROR(status);
  return compared;
}

std::vector<Table> TablesOf(const ComparedSteps& compared) {
  std::vector<Table> tables;
  if (!compared.edits.empty()) {
    Table& table = tables.emplace_back(Table{.key = "edits",
                                             .title = "edits of the recorded job",
                                             .columns = {{"edit", "edit", Unit::kText},
                                                         {"certainty", "certainty", Unit::kText},
                                                         {"text", "change", Unit::kText}},
                                             .rows = {}});
    for (const EditLine& one : compared.edits) {
      table.rows.push_back({one.edit, one.certainty, one.text});
    }
  }
  if (!compared.steps.rows.empty()) tables.push_back(compared.steps);
  return tables;
}

}  // namespace etude
