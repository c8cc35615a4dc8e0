#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/app/command.h"
#include "src/cli/app/options.h"
#include "src/report/inspected.h"

namespace etude {

// Table output of the inspection commands: as text, --json or --csv.
class TableOutput {
 public:
  // Declares the options. `tables`: keys of all tables of the command. --csv prints the first one
  // unless --table names another.
  void Declare(Options& options, std::vector<std::string> tables);
  // Returns kUsage for contradictory options.
  Status Check() const;

  // Prints the tables. Tables of several ranks are joined with a column for the rank, or the
  // trace's path if the rank is missing or not unique. `format`: "etude-stats".
  void Print(std::string_view format, const std::vector<Inspected>& found,
             const Console& console) const;

  // Return the options, for commands that print other documents.
  bool json() const { return json_; }
  bool csv() const { return csv_; }
  const std::string& table() const { return table_; }  // "": all
  size_t top() const { return static_cast<size_t>(top_); }

 private:
  bool json_ = false;
  bool csv_ = false;
  std::string table_;                // "": all
  std::vector<std::string> tables_;  // keys
  int64_t top_ = 20;
};

}  // namespace etude
