#include "src/sim/result/diagnosis.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/trace/job/rank_set.h"
#include "src/trace/words/enums.h"

namespace etude {
namespace {

// Describes a message from a receive's partner that differs in size or tag only.
std::string SentInstead(const SimWorkload& workload, const SimResult& result, int64_t rank,
                        const SimNode& receive, int64_t peer) {
  const SimRank& other = workload.ranks[static_cast<size_t>(peer)];
  const SimRankResult& done = result.OfRank(peer);
  for (size_t i = 0; i < other.program->nodes.size(); ++i) {
    const SimNode& node = other.program->nodes[i];
    if (node.kind != NodeKind::kSend || done.begins[i] < 0 || other.PeerOf(node) != rank) continue;
    if ((TagOf(node) == TagOf(receive)) == (node.bytes == receive.bytes)) continue;
    return fmt::format(" (rank {} has sent {} bytes with tag {} in its node {})", peer, node.bytes,
                       node.tag, other.program->source_ids[i]);
  }
  return "";
}

SimWait WaitOf(const SimWorkload& workload, const SimResult& result, const Arrivals& arrivals,
               int64_t rank) {
  const size_t rank_class = result.class_of[static_cast<size_t>(rank)];
  const SimRank& self = workload.ranks[static_cast<size_t>(rank)];
  const SimProgram& program = *self.program;
  const SimRankResult& done = result.ranks[rank_class];
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    if (done.begins[i] < 0 || done.ends[i] >= 0) continue;
    const SimNode& node = program.nodes[i];
    SimWait wait{.rank = rank,
                 .node = program.source_ids[i],
                 .since = done.begins[i],
                 .what = "work that never ends",
                 .for_rank = arrivals.AbsentFrom(rank_class, i)};
    const int64_t peer = self.PeerOf(node);
    if (node.kind == NodeKind::kSend) {
      wait.what =
          fmt::format("the arrival of {} bytes with tag {} at rank {}", node.bytes, node.tag, peer);
    } else if (node.kind == NodeKind::kRecv) {
      wait.what = fmt::format("{} bytes from rank {} with tag {}", node.bytes, peer, node.tag) +
                  SentInstead(workload, result, rank, node, peer);
    } else if (node.kind == NodeKind::kCollective) {
      const int64_t group = self.GroupOf(node);
      wait.what = fmt::format("{} of {} bytes", Name(node.collective), node.bytes);
      if (group != 0) wait.what += fmt::format(" in group {}", group);
      if (const auto other = arrivals.OtherSizeAt(rank_class, i)) {
        const SimProgram& its = *workload.ranks[static_cast<size_t>(other->rank)].program;
        wait.what += fmt::format(" (rank {} reached it with {} bytes in its node {})", other->rank,
                                 its.nodes[other->node].bytes, its.source_ids[other->node]);
      }
      const auto in_program = std::ranges::find(done.waits, i, &SimProgramWait::node);
      if (in_program != done.waits.end()) {
        const auto way = in_program->receives
                             ? fmt::format("for {} bytes from", in_program->bytes)
                             : fmt::format("the arrival of {} bytes at", in_program->bytes);
        const auto& names = arrivals.machine().system.program_names;
        const auto name = names.find(node.collective);
        wait.what += fmt::format(", whose algorithm{} waits in its node {} {} rank {} with tag {}",
                                 name == names.end() ? "" : " " + name->second, in_program->id, way,
                                 in_program->peer, in_program->tag);
      }
    }
    return wait;
  }
  return {.rank = rank};
}

}  // namespace

std::optional<SimDiagnosis> Diagnose(const SimWorkload& workload, const SimResult& result,
                                     const Arrivals& arrivals) {
  SimDiagnosis diagnosis;
  for (size_t rank = 0; rank < result.class_of.size(); ++rank) {
    if (!result.OfRank(static_cast<int64_t>(rank)).finished) {
      diagnosis.waiting.push_back(static_cast<int64_t>(rank));
    }
  }
  if (diagnosis.waiting.empty()) return std::nullopt;
  std::vector<bool> seen(result.class_of.size());
  std::optional<int64_t> next = diagnosis.waiting.front();
  while (next) {
    const auto at = static_cast<size_t>(*next);
    if (seen[at] || result.OfRank(*next).finished) {
      diagnosis.end = seen[at] ? SimDiagnosis::End::kCycle : SimDiagnosis::End::kDone;
      break;
    }
    seen[at] = true;
    next = diagnosis.chain.emplace_back(WaitOf(workload, result, arrivals, *next)).for_rank;
  }
  return diagnosis;
}

std::vector<std::string> ToLines(const SimDiagnosis& diagnosis,
                                 const std::function<std::string(int64_t)>& name) {
  std::vector<std::string> lines;
  for (const SimWait& wait : diagnosis.chain) {
    if (!wait.node) {
      lines.push_back(fmt::format("{}: no node is ready", name(wait.rank)));
      continue;
    }
    std::string line = fmt::format("{}: node {} has waited since {} ns for {}", name(wait.rank),
                                   *wait.node, wait.since, wait.what);
    if (wait.for_rank) line += fmt::format(": rank {} has not reached it", *wait.for_rank);
    lines.push_back(std::move(line));
  }
  const SimWait& last = diagnosis.chain.back();
  switch (diagnosis.end) {
    case SimDiagnosis::End::kCycle:
      lines.push_back(fmt::format("a cycle: rank {} also waits, see above", *last.for_rank));
      break;
    case SimDiagnosis::End::kDone:
      lines.push_back(fmt::format("rank {} has finished and has no more nodes", *last.for_rank));
      break;
    case SimDiagnosis::End::kUnknown:
      if (last.node)
        lines.push_back(
            "all ranks that take part have reached it, but their operations do not match");
  }
  return lines;
}

}  // namespace etude
