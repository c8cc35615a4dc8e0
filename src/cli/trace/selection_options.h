#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/cli/app/options.h"
#include "src/transform/edit/selection.h"
#include "src/transform/read_job.h"

namespace etude {

// The options --label, --step, --thread, --stream, --module, --time, --op, --phase, --comm and
// --rank, which select parts of traces. Must outlive parsing.
struct SelectionOptions {
  Selection selection;
  std::vector<std::string> ranks;

  void Declare(Options& options);
  // Returns the traces in `paths` selected by --rank; all without it. kUsage for missing ranks.
  Result<std::vector<RankInput>> FindInputs(const std::vector<std::string>& paths,
                                            const RunContext& context) const;
  // Returns the selected part of a trace; all of it without a selection.
  Result<Trace> Select(Trace trace, const std::string& path, const Limits& limits) const;
};

}  // namespace etude
