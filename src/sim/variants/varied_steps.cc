#include "src/sim/variants/varied_steps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"

namespace etude {

Result<std::vector<int64_t>> SimulateVaried(const SimMachine& machine, const SimWorkload& workload,
                                            const StepVariation& variation,
                                            const RunContext& context) {
  std::vector<int64_t> steps;
  RandomStream random(variation.seed);
  RunContext quiet = context;
  quiet.progress = nullptr;
  for (int64_t run = 0; run < variation.runs && !context.stopped(); ++run) {
    context.Progress("simulate variations: runs", static_cast<uint64_t>(run),
                     static_cast<uint64_t>(variation.runs));
    SimMachine varied = machine;
    varied.noise = variation.noise;
    varied.noise_seed = random.Next();
    for (int64_t rank = 0; variation.slow_share > 0 && rank < machine.npus(); ++rank) {
      if (random.UniformDouble() >= variation.slow_share) continue;
      const auto [found, is_new] = varied.stragglers.emplace(rank, variation.slow_factor);
      if (!is_new) found->second *= variation.slow_factor;
    }
    ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(varied, workload, {.context = &quiet}));
    if (result.stopped) break;
    int64_t step = 0;
    for (const SimRankResult& rank : result.ranks) {
      if (!rank.finished) {
        return BadInput(fmt::format("run {}: found ranks that wait forever", run + 1));
      }
      step = std::max(step, rank.end);
    }
    steps.push_back(step);
  }
  context.Progress("simulate variations: runs", steps.size(), steps.size());
  return steps;
}

}  // namespace etude
