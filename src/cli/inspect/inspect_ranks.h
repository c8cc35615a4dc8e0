#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/cli/tool/table_output.h"
#include "src/report/inspections.h"

namespace etude {

// The commands `stats`, `breakdown`, `critical-path` and `memory`, which differ in what they look
// for only.
std::unique_ptr<Command> MakeInspectionCommand(const Inspection& inspection, std::string_view name,
                                               std::string_view summary);

// Part of an inspection command: its inputs and outputs, and what they have in common.
class RankInspection {
 public:
  void Declare(Options& options, const Inspection& inspection);
  // Reads the traces of all ranks, several at once, and prints what `inspection` finds in them.
  Result<ExitCode> Run(const Inspection& inspection, const Console& console) const;

 private:
  std::vector<std::string> paths_;
  int64_t jobs_ = 0;
  TableOutput output_;
};

}  // namespace etude
