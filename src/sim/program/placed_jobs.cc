#include "src/sim/program/placed_jobs.h"

#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr size_t kMostNodes = 100'000'000;  // of a repeated program, and its dependencies

// Makes the programs of a placed job from those of the job, which many ranks share.
class PlacedPrograms {
 public:
  explicit PlacedPrograms(int64_t steps) : steps_(steps) {}

  Result<std::shared_ptr<const SimProgram>> Of(const std::shared_ptr<const SimProgram>& program) {
    std::shared_ptr<const SimProgram>& made = made_[program.get()];
    if (made != nullptr) return made;
    ETUDE_ASSIGN_OR_RETURN(SimProgram placed, RepeatProgram(*program, steps_));
    // Number 1 is the group of all ranks of the job.
    for (SimNode& node : placed.nodes) {
      if (node.kind == NodeKind::kCollective) ++node.group;
    }
    made = std::make_shared<const SimProgram>(std::move(placed));
    return made;
  }

 private:
  int64_t steps_;
  std::map<const SimProgram*, std::shared_ptr<const SimProgram>> made_;
};

}  // namespace

Result<SimProgram> RepeatProgram(const SimProgram& program, int64_t steps) {
  if (steps == 1) return program;
  const size_t count = program.nodes.size();
  std::vector<uint32_t> firsts;
  std::vector<uint32_t> lasts;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t i = 0; i < count; ++i) {
    if (program.waits[i] == 0) firsts.push_back(i);
    if (program.children[i].empty()) lasts.push_back(i);
    for (const uint32_t child : program.children[i]) edges.emplace_back(i, child);
  }
  const size_t inner = edges.size();
  const auto repetitions = static_cast<size_t>(steps);
  const size_t largest = count + inner + firsts.size() * lasts.size();
  if (largest > kMostNodes / repetitions) {
    return BadInput(
        fmt::format("found {} steps of a program with {} nodes, {} of which begin and "
                    "{} end it, expected at most {} nodes and dependencies",
                    steps, count, firsts.size(), lasts.size(), kMostNodes));
  }
  SimProgram all;
  all.host_computes = program.host_computes;
  for (size_t step = 0; step < repetitions; ++step) {
    all.nodes.insert(all.nodes.end(), program.nodes.begin(), program.nodes.end());
    all.origin.insert(all.origin.end(), program.origin.begin(), program.origin.end());
    all.source_ids.insert(all.source_ids.end(), program.source_ids.begin(),
                          program.source_ids.end());
    all.waits.insert(all.waits.end(), program.waits.begin(), program.waits.end());
    if (step == 0) continue;
    const auto shift = static_cast<uint32_t>(step * count);
    const auto before = shift - static_cast<uint32_t>(count);
    for (size_t i = 0; i < inner; ++i) {
      edges.emplace_back(edges[i].first + shift, edges[i].second + shift);
    }
    for (const uint32_t first : firsts) {
      all.waits[first + shift] = static_cast<uint32_t>(lasts.size());
    }
    for (const uint32_t last : lasts) {
      for (const uint32_t first : firsts) edges.emplace_back(last + before, first + shift);
    }
  }
  all.children = Csr<uint32_t>::Build(
      all.nodes.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return all;
}

Result<SimWorkload> PlaceJobs(std::span<const PlacedJob> jobs, int64_t npus) {
  SimWorkload placed;
  placed.ranks.assign(static_cast<size_t>(npus),
                      {.program = std::make_shared<const SimProgram>(), .groups = {}, .peers = {}});
  int64_t next_group = 1;
  for (const PlacedJob& job : jobs) {
    PlacedPrograms programs(job.steps);
    const int64_t all_ranks = next_group++;
    placed.groups[all_ranks] = job.npus;
    std::map<int64_t, int64_t> new_group;
    for (const auto& [group, ranks] : job.workload->groups) {
      new_group[group] = next_group;
      std::vector<int64_t>& members = placed.groups[next_group++];
      for (const int64_t rank : ranks) members.push_back(job.npus[static_cast<size_t>(rank)]);
    }
    for (size_t rank = 0; rank < job.workload->ranks.size(); ++rank) {
      const SimRank& old = job.workload->ranks[rank];
      SimRank& made = placed.ranks[static_cast<size_t>(job.npus[rank])];
      ETUDE_ASSIGN_OR_RETURN(made.program, programs.Of(old.program));
      made.groups = {all_ranks};
      for (const int64_t group : old.groups) {
        const auto found = new_group.find(group);
        made.groups.push_back(found == new_group.end() ? -1 : found->second);
      }
      for (const int64_t peer : old.peers) {
        const bool is_known = peer >= 0 && peer < static_cast<int64_t>(job.npus.size());
        made.peers.push_back(is_known ? job.npus[static_cast<size_t>(peer)] : -1);
      }
    }
    placed.rounded_times = placed.rounded_times || job.workload->rounded_times;
  }
  return placed;
}

}  // namespace etude
