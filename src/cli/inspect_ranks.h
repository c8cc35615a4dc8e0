#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/cli/command.h"
#include "src/cli/table_output.h"
#include "src/trace/trace.h"
#include "src/transform/read_job.h"

namespace etude {

// Part of an inspection command: its inputs and outputs, and what they have in common.
class RankInspection {
 public:
  // `tables`: as in TableOutput. `choose`: what to read of the ranks of a capture folder.
  void Declare(Options& options, std::vector<std::string> tables,
               RankInput (*choose)(const CaptureRank&) = RichestInput);

  // What one trace says: its tables and notes.
  using Inspect =
      std::function<Result<Inspected>(const Trace&, const RankInput&, const RunContext&)>;
  // Reads the traces of all ranks, several at once, and prints what `inspect` finds in them.
  Result<ExitCode> Run(std::string_view format, const Console& console,
                       const Inspect& inspect) const;

 private:
  std::vector<std::string> paths_;
  int64_t jobs_ = 0;
  RankInput (*choose_)(const CaptureRank&) = RichestInput;
  TableOutput output_;
};

}  // namespace etude
