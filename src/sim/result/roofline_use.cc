#include "src/sim/result/roofline_use.h"

#include <algorithm>
#include <cstddef>

namespace etude {

RooflineUse RooflineUseOf(const SimMachine& machine, const SimWorkload& workload,
                          const SimResult& result, int64_t rank) {
  const SystemModel& system = machine.system;
  RooflineUse use;
  if (!system.roofline || system.replay_only) return use;
  const SimProgram& program = *workload.ranks[static_cast<size_t>(rank)].program;
  const SimRankResult& times = result.OfRank(rank);
  const double bandwidth = system.memory_bandwidth * 1e9;
  const double peak = system.peak * 1e12;
  const auto straggler = machine.stragglers.find(rank);
  const double factor = straggler == machine.stragglers.end() ? 1 : straggler->second;
  double total = 1;  // as in ASTRA-sim, so that it is not 0
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const SimNode& node = program.nodes[i];
    if (node.kind != NodeKind::kCompute || node.on_host || node.bytes <= 0) continue;
    if (times.ends[i] < 0) continue;
    const auto time = static_cast<double>(times.ends[i] - times.begins[i]);
    const double intensity = static_cast<double>(node.flops) / static_cast<double>(node.bytes);
    const double rate = std::min(bandwidth * intensity, peak);
    total += time;
    if (rate == peak) use.compute_bound += time;
    use.compute += time * rate / peak / factor;
    use.memory += time * (node.flops == 0 ? 1 : rate / intensity / bandwidth) / factor;
    use.intensity += time * intensity;
  }
  use.compute_bound /= total;
  use.compute /= total;
  use.memory /= total;
  use.intensity /= total;
  return use;
}

}  // namespace etude
