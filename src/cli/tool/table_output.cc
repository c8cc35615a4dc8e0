#include "src/cli/tool/table_output.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/report/text/json_output.h"

namespace etude {

void TableOutput::Declare(Options& options, std::vector<std::string> tables) {
  options.Flag("--json", &json_, "print JSON");
  options.Flag("--csv", &csv_, "print one table as CSV");
  std::string help = "print only this table:";
  for (const std::string& table : tables) help += " " + table;
  tables_ = std::move(tables);
  options.Value("--table", &table_, "NAME", help);
  options.Value("--top", &top_, "N",
                "number of rows to print per table and rank as text; 0 for all", {.least = 0});
}

Status TableOutput::Check() const {
  if (json_ && csv_) return MakeError(ErrorCode::kUsage, "use either --json or --csv");
  if (table_.empty() || std::ranges::count(tables_, table_) != 0) return {};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--table: unknown table '{}': expected {}{}", table_,
                               fmt::join(tables_, ", "), DidYouMean(table_, tables_)));
}

void TableOutput::Print(std::string_view format, const std::vector<Inspected>& found,
                        const Console& console) const {
  if (json_) {
    console.Print(JsonText(ToJson(found, format, table_)));
  } else if (csv_) {
    const std::string& wanted = table_.empty() ? tables_.front() : table_;
    for (size_t i = 0; i < found.front().tables.size(); ++i) {
      if (found.front().tables[i].key == wanted) console.PrintData(ToCsv(JoinTables(found, i)));
    }
  } else {
    console.Print(ToText(found, table_, static_cast<size_t>(top_)));
  }
}

}  // namespace etude
