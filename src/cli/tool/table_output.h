#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/app/command.h"
#include "src/cli/app/options.h"
#include "src/report/inspected.h"

namespace etude {

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

  // What is asked for, where a command prints other documents.
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
