#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/health.h"
#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/report/table.h"

namespace etude {

// What an inspection found out about one trace.
struct Inspected {
  std::optional<int64_t> rank;
  std::string path;
  std::vector<Table> tables;       // the same keys and columns for every trace
  std::vector<std::string> notes;  // what the figures leave out, a line each
  Health health;
};

// How the inspection commands print tables: as text, --json or --csv.
class TableOutput {
 public:
  // `tables`: keys of all tables that the command makes, of which --csv prints the first unless
  // --table names another.
  void Declare(Options& options, std::vector<std::string> tables);
  // kUsage if the options contradict each other.
  Status Check() const;

  // Tables of one key become one, with a column that says of which rank a row is: its number, or
  // the trace's path if it has none or shares it with another. `format`: "etude-stats".
  void Print(std::string_view format, const std::vector<Inspected>& found,
             const Console& console) const;

 private:
  std::string Text(const std::vector<Inspected>& found) const;
  std::string JsonText(std::string_view format, const std::vector<Inspected>& found) const;
  bool IsWanted(const Table& table) const { return table_.empty() || table_ == table.key; }

  bool json_ = false;
  bool csv_ = false;
  std::string table_;                // "": all
  std::vector<std::string> tables_;  // keys
  int64_t top_ = 20;
};

}  // namespace etude
