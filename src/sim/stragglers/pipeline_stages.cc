#include "src/sim/stragglers/pipeline_stages.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace etude {
namespace {

// The first message of a rank with each partner, by the partner's number in SimRank::peers.
struct FirstMessages {
  std::map<uint32_t, bool> sends;   // whether it is a send
  std::optional<bool> first_sends;  // whether the first of all is one
};

FirstMessages FirstMessagesOf(const SimProgram& program) {
  FirstMessages first;
  for (const SimNode& node : program.nodes) {
    const bool sends = node.kind == NodeKind::kSend;
    if ((!sends && node.kind != NodeKind::kRecv) || node.peer == SimNode::kNobody) continue;
    first.sends.try_emplace(node.peer, sends);
    if (!first.first_sends) first.first_sends = sends;
  }
  return first;
}

}  // namespace

PipelineStages FindPipelineStages(const SimWorkload& workload) {
  const size_t count = workload.ranks.size();
  std::map<const SimProgram*, FirstMessages> known;
  std::vector<std::map<size_t, bool>> sends(count);  // by rank and partner
  std::vector<size_t> reached;
  std::vector<std::optional<size_t>> stage_of(count);
  for (size_t rank = 0; rank < count; ++rank) {
    const SimRank& of = workload.ranks[rank];
    const auto [first, is_new] = known.try_emplace(of.program.get());
    if (is_new) first->second = FirstMessagesOf(*of.program);
    for (const auto& [peer, is_send] : first->second.sends) {
      const int64_t partner = of.peers[peer];
      if (partner < 0 || static_cast<size_t>(partner) >= count) return {};
      sends[rank].try_emplace(static_cast<size_t>(partner), is_send);
    }
    if (!first->second.first_sends.value_or(false)) continue;
    reached.push_back(rank);
    stage_of[rank] = 0;
  }
  size_t last = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const size_t rank = reached[i];
    for (const auto& [partner, is_send] : sends[rank]) {
      if (!is_send || stage_of[partner]) continue;
      stage_of[partner] = *stage_of[rank] + 1;
      last = std::max(last, *stage_of[partner]);
      reached.push_back(partner);
    }
  }
  if (reached.size() < count || last == 0) return {};
  PipelineStages stages(last + 1);
  for (size_t rank = 0; rank < count; ++rank) {
    stages[*stage_of[rank]].push_back(rank);
    for (const auto& [partner, is_send] : sends[rank]) {
      const auto back = sends[partner].find(rank);
      if (back != sends[partner].end() && back->second == is_send) return {};
      const size_t from = *stage_of[is_send ? rank : partner];
      const size_t to = *stage_of[is_send ? partner : rank];
      if (to != from + 1 && (from != last || to != 0)) return {};
    }
  }
  return stages;
}

}  // namespace etude
