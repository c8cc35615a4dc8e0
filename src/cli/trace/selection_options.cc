#include "src/cli/trace/selection_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/transform/edit/slice.h"

namespace etude {

void SelectionOptions::Declare(Options& options) {
  options.Values("--label", &selection.labels, "TEXT",
                 "select nodes below labels whose name contains TEXT");
  options.Values("--step", &selection.steps, "N",
                 "select step ProfilerStep#N, or several as FROM..TO");
  options.Values("--thread", &selection.threads, "NAME",
                 "select a host thread and the work it launched");
  options.Values("--stream", &selection.streams, "[DEVICE:]N", "select a stream of a device");
  options.Values("--module", &selection.modules, "NAME", "select nodes below modules of this name");
  options.Values("--time", &selection.times, "FROM..TO",
                 "select a time range relative to the start of the trace, such as 1.5ms..20ms");
  options.Values("--op", &selection.operators, "NAME",
                 "select nodes of this name and nodes below them; * matches any text");
  options.Values(
      "--phase", &selection.phases, "PHASE",
      "select a phase: forward, backward or optimizer; in generated traces also prefill, decode");
  options.Values("--micro-batch", &selection.micro_batches, "N",
                 "select a micro-batch of a generated trace");
  options.Flag("--comm", &selection.communication, "select communication and nodes below it");
  options.Values("--rank", &ranks, "N", "select a rank");
}

Result<std::vector<RankInput>> SelectionOptions::FindInputs(const std::vector<std::string>& paths,
                                                            const RunContext& context) const {
  ETUDE_ASSIGN_OR_RETURN(std::vector<RankInput> inputs, FindRanks(paths, context));
  if (ranks.empty()) return inputs;
  std::vector<std::string> known;
  for (const RankInput& input : inputs) {
    if (input.rank) known.push_back(std::to_string(*input.rank));
  }
  if (inputs.size() == 1 && known.empty()) {
    return MakeError(ErrorCode::kUsage, fmt::format("--rank {}: found only one trace, {}, expected "
                                                    "several or a folder of ranks; remove --rank",
                                                    ranks.front(), inputs.front().path));
  }
  for (const std::string& rank : ranks) {
    if (std::ranges::count(known, rank) != 0) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--rank {}: found {}", rank,
                                 known.empty() ? "no trace with a rank in its name"
                                               : fmt::format("ranks {}", fmt::join(known, ", "))));
  }
  std::erase_if(inputs, [&](const RankInput& input) {
    return !input.rank || std::ranges::count(ranks, std::to_string(*input.rank)) == 0;
  });
  return inputs;
}

Result<Trace> SelectionOptions::Select(Trace trace, const std::string& path,
                                       const Limits& limits) const {
  if (selection.empty()) return trace;
  Result<SliceResult> slice = Slice(trace, selection, limits);
  if (!slice) return MakeError(slice.error().code, path + ": " + slice.error().message);
  return std::move(slice->trace);
}

}  // namespace etude
