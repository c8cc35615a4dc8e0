#include "src/jobs/sim_warnings.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "src/report/text/format.h"
#include "src/trace/job/rank_set.h"

namespace etude {

namespace {

void WarnOfPrograms(const SimMachine& machine, const std::string& system,
                    const RunContext& context) {
  for (const auto& [type, ranks] : machine.system.programs) {
    uint64_t empty = 0;
    uint64_t other = 0;
    for (const SimRank& rank : ranks) {
      empty += rank.program->nodes.empty() ? 1 : 0;
      for (const SimNode& node : rank.program->nodes) {
        const bool is_usual = node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv ||
                              node.kind == NodeKind::kCompute;
        other += is_usual ? 0 : 1;
      }
    }
    if (empty > 0) {
      context.Warn(fmt::format("{}: {} of {} without nodes, which take no time", system,
                               FormatCount(empty, "program"), Name(type)));
    }
    if (other > 0) {
      context.Warn(
          fmt::format("{}: programs of {} contain {} other than sends, receives and computations; "
                      "each takes its duration, or 1 ns",
                      system, Name(type), FormatCount(other, "node")));
    }
  }
}

// Warns of collectives of groups that use a ring in place of the listed algorithms.
void WarnOfGroups(const SimMachine& machine, const std::string& system, const SimWorkload& workload,
                  const RunContext& context) {
  if (machine.graph != nullptr || machine.times != nullptr) return;
  std::set<const SimProgram*> seen;
  std::set<CollectiveType> types;
  for (const SimRank& rank : workload.ranks) {
    if (!seen.insert(rank.program.get()).second) continue;
    for (const SimNode& node : rank.program->nodes) {
      if (node.kind != NodeKind::kCollective || node.group == 0) continue;
      const auto group = workload.groups.find(rank.GroupOf(node));
      if (group == workload.groups.end()) continue;
      if (group->second.size() < workload.ranks.size()) types.insert(node.collective);
    }
  }
  for (const CollectiveType type : types) {
    const auto found = machine.system.algorithms.find(type);
    if (found == machine.system.algorithms.end() || found->second.size() < 2) continue;
    const auto is_ring = [](const AlgorithmChoice& choice) {
      return choice.algorithm == CollectiveAlgorithm::kRing;
    };
    if (std::ranges::all_of(found->second, is_ring)) continue;
    context.Warn(
        fmt::format("{}: {} of groups uses a ring, because the list has an algorithm for each "
                    "dimension, as in ASTRA-sim; a list of one algorithm applies to groups too",
                    system, Name(type)));
  }
}

}  // namespace

void WarnOfSilences(const SimMachine& machine, const MachineNames& names,
                    const SimWorkload& workload, const SimResult& result,
                    const RunContext& context) {
  for (const std::string& remark : machine.system_remarks) {
    context.Warn(fmt::format("{}: {}", names.system, remark));
  }
  for (const std::string& remark : machine.memory_remarks) {
    context.Warn(fmt::format("{}: {}", names.memory, remark));
  }
  WarnOfPrograms(machine, names.system, context);
  for (const auto& [type, choices] : machine.system.algorithms) {
    if (choices.empty() || choices.front().whole || choices.size() >= machine.dims.size()) continue;
    context.Warn(
        fmt::format("{}: {} has an algorithm for only {} of {} dimensions; the others are not "
                    "used, as in ASTRA-sim",
                    names.system, Name(type), choices.size(), machine.dims.size()));
  }
  std::map<const SimProgram*, uint64_t> ranks;
  for (const SimRank& rank : workload.ranks) ++ranks[rank.program.get()];
  WarnOfGroups(machine, names.system, workload, context);
  uint64_t timeless = 0;
  uint64_t unsized = 0;
  for (const auto& [program, count] : ranks) {
    for (const SimNode& node : program->nodes) {
      const bool computes = node.kind == NodeKind::kCompute;
      const bool has_time =
          machine.system.roofline && !node.on_host ? node.bytes > 0 : node.duration > 0;
      const bool is_known = workload.rounded_times && !machine.system.roofline;
      if (computes && !has_time && !is_known) timeless += count;
      if (node.unsized && !machine.system.Replays(node)) unsized += count;
    }
  }
  if (timeless > 0 && !machine.system.replay_only) {
    context.Warn(fmt::format(
        "{} no time, or 1 ns, because of missing {}",
        FormatCount(timeless, "computation takes", "computations take"),
        machine.system.roofline
            ? "bytes for the roofline"
            : "durations; use `etude generate --device NAME` or a roofline in --system"));
  }
  if (unsized > 0 && !machine.system.replay_only) {
    context.Warn(FormatCount(unsized, "communication has", "communications have") +
                 " no size, treated as 0 bytes");
  }
  if (result.unreceived > 0) {
    context.Warn(FormatCount(result.unreceived, "message has", "messages have") +
                 " arrived without a receiver");
  }
}

Status CheckRoofline(const std::string& system, const SimMachine& machine,
                     const SimWorkload& workload) {
  if (!machine.system.roofline || machine.system.replay_only) return {};
  bool has_durations = false;
  for (const SimRank& rank : workload.ranks) {
    for (const SimNode& node : rank.program->nodes) {
      if (node.kind != NodeKind::kCompute || node.on_host) continue;
      if (node.bytes > 0) return {};
      has_durations = has_durations || node.duration > 0;
    }
  }
  if (!has_durations) return {};
  return BadInput(fmt::format(
      "{}: roofline-enabled: found computations with durations, but none with bytes, expected "
      "bytes; recorded jobs have them with --compute flops",
      system));
}

std::function<std::string(int64_t)> NamesOfRanks(const std::string& prefix) {
  return [prefix](int64_t rank) {
    return prefix.empty() ? fmt::format("rank {}", rank) : fmt::format("{}.{}.et", prefix, rank);
  };
}

std::vector<std::string> WhyStuck(const SimDiagnosis& diagnosis, const std::string& prefix) {
  std::vector<std::string> lines{
      fmt::format("{} forever: {}", diagnosis.waiting.size() == 1 ? "a rank waits" : "ranks wait",
                  RankListText(diagnosis.waiting))};
  for (std::string& line : ToLines(diagnosis, NamesOfRanks(prefix))) {
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace etude
