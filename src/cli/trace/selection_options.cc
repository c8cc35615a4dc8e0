#include "src/cli/trace/selection_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/transform/edit/slice.h"

namespace etude {

void SelectionOptions::Declare(Options& options) {
  options.Values("--label", &selection.labels, "TEXT",
                 "select what is below nodes with TEXT in their name");
  options.Values("--step", &selection.steps, "N", "the step ProfilerStep#N; FROM..TO for several");
  options.Values("--thread", &selection.threads, "NAME", "a host thread, and what it launched");
  options.Values("--stream", &selection.streams, "[DEVICE:]N", "a stream of a device");
  options.Values("--module", &selection.modules, "NAME",
                 "select what is below modules of this name");
  options.Values("--time", &selection.times, "FROM..TO",
                 "select a time range from the start of the trace, as 1.5ms..20ms");
  options.Values("--op", &selection.operators, "NAME",
                 "nodes of this name, * for any text, and what is below");
  options.Values("--phase", &selection.phases, "PHASE",
                 "forward, backward or optimizer; of generated traces also prefill, decode");
  options.Values("--micro-batch", &selection.micro_batches, "N",
                 "this micro-batch of a generated trace");
  options.Flag("--comm", &selection.communication, "communication, and what is below");
  options.Values("--rank", &ranks, "N", "this rank of several");
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
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--rank {}: found one trace, {}, expected several or a folder of "
                                 "ranks; without --rank it is taken",
                                 ranks.front(), inputs.front().path));
  }
  for (const std::string& rank : ranks) {
    if (std::ranges::count(known, rank) != 0) continue;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--rank {}: found {}", rank,
                                 known.empty() ? "no trace whose name tells its rank"
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
