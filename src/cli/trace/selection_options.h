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
// --rank: which part of which traces a command means. Must outlive parsing.
struct SelectionOptions {
  Selection selection;
  std::vector<std::string> ranks;

  void Declare(Options& options);
  // The traces behind `paths` that --rank means; all without it. kUsage for ranks that are not
  // there.
  Result<std::vector<RankInput>> FindInputs(const std::vector<std::string>& paths,
                                            const RunContext& context) const;
  // What is selected of the trace of `path`; all of it without a selection.
  Result<Trace> Select(Trace trace, const std::string& path, const Limits& limits) const;
};

}  // namespace etude
