#include "src/cli/sim_warnings.h"

#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "src/report/format.h"
#include "src/trace/rank_set.h"

namespace etude {

void WarnOfSilences(const SimMachine& machine, const std::string& system,
                    const SimWorkload& workload, const SimResult& result,
                    const RunContext& context) {
  for (const auto& [type, choices] : machine.system.algorithms) {
    if (choices.empty() || choices.front().whole || choices.size() >= machine.dims.size()) continue;
    context.Warn(
        fmt::format("{}: {} has an algorithm for {} of {} dimensions: it leaves the others out, as "
                    "in ASTRA-sim",
                    system, Name(type), choices.size(), machine.dims.size()));
  }
  std::map<const SimProgram*, uint64_t> ranks;
  for (const SimRank& rank : workload.ranks) ++ranks[rank.program.get()];
  uint64_t timeless = 0;
  for (const auto& [program, count] : ranks) {
    for (const SimNode& node : program->nodes) {
      const bool computes = node.kind == NodeKind::kCompute;
      const bool has_time =
          machine.system.roofline && !node.on_host ? node.bytes > 0 : node.duration > 0;
      if (computes && !has_time) timeless += count;
    }
  }
  if (timeless > 0 && !machine.system.replay_only) {
    context.Warn(fmt::format("{} no time, or 1 ns: without {}",
                             FormatCount(timeless, "computation takes", "computations take"),
                             machine.system.roofline ? "bytes for the roofline" : "a duration"));
  }
  if (result.unreceived > 0) {
    context.Warn(FormatCount(result.unreceived, "message has", "messages have") +
                 " come that nobody receives");
  }
}

void Complain(const SimDiagnosis& diagnosis, const std::string& prefix, const Console& console) {
  console.Complain(fmt::format("{} for ever: {}",
                               diagnosis.waiting.size() == 1 ? "a rank waits" : "ranks wait",
                               RankListText(diagnosis.waiting)));
  const auto name = [&](int64_t rank) {
    return prefix.empty() ? fmt::format("rank {}", rank) : fmt::format("{}.{}.et", prefix, rank);
  };
  for (const std::string& line : ToLines(diagnosis, name)) console.Complain(line);
}

}  // namespace etude
