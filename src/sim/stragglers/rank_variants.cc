#include "src/sim/stragglers/rank_variants.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/base/container/hash.h"

namespace etude {
namespace {

double TimeOf(const RankUse& use, std::span<const size_t> nodes) {
  double sum = 0;
  for (const size_t node : nodes) sum += static_cast<double>(use.own[node]);
  return sum;
}

std::shared_ptr<const SimProgram> WithTimes(const RankUse& use,
                                            const RankVariants::Duration& duration) {
  auto program = std::make_shared<SimProgram>(*use.program);
  for (size_t i = 0; i < program->nodes.size(); ++i) {
    program->nodes[i].duration = duration(use, i);
  }
  return program;
}

}  // namespace

WorkNames WorkNamesOf(const Job& job, const SimWorkload& workload) {
  WorkNames all;
  std::map<std::pair<std::string_view, bool>, uint32_t> known;
  for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
    const SimProgram& program = *workload.ranks[rank].program;
    const auto [names, is_new] = all.of_nodes.try_emplace(&program);
    const std::optional<size_t> of = job.ClassOf(static_cast<int64_t>(rank));
    if (!is_new || !of) continue;
    const Trace& trace = job.classes[*of].program;
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      const NodeId node = program.origin[i];
      const bool is_label = trace.kind(node) == NodeKind::kLabel;
      if (program.nodes[i].kind != NodeKind::kCompute) {
        names->second.push_back(WorkNames::kNoName);
        continue;
      }
      const auto [name, is_new_name] = known.try_emplace(std::pair(trace.name(node), is_label),
                                                         static_cast<uint32_t>(all.names.size()));
      if (is_new_name) {
        all.names.push_back({.text = std::string(trace.name(node)), .is_label = is_label});
      }
      names->second.push_back(name->second);
    }
  }
  return all;
}

int64_t RankUse::OfOthers(size_t node) const {
  if (like <= 1) return own[node];
  const auto all = static_cast<double>(ideal[node]) * like;
  return std::max<int64_t>(std::llround((all - static_cast<double>(own[node])) / (like - 1)), 0);
}

NodesByName NodesOf(const RankUse& use) {
  NodesByName nodes;
  for (size_t i = 0; i < use.names.size(); ++i) {
    if (use.names[i] != WorkNames::kNoName) nodes[use.names[i]].push_back(i);
  }
  return nodes;
}

RankVariants::RankVariants(const SimMachine& machine, const SimWorkload& workload,
                           const WorkNames& names, const PipelineStages& stages,
                           const RunContext& context)
    : machine_(machine), workload_(workload), names_(names), context_(context), quiet_(context) {
  machine_.stragglers.clear();  // part of the durations
  quiet_.progress = nullptr;
  FindUses(machine.stragglers, stages);
  FindKinds();
  for (const std::vector<size_t>& kind : kinds_) FindIdeal(kind);
}

void RankVariants::FindUses(const std::map<int64_t, double>& stragglers,
                            const PipelineStages& stages) {
  std::vector<size_t> stage_of(workload_.ranks.size());
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const size_t rank : stages[stage]) stage_of[rank] = stage;
  }
  std::map<std::tuple<const SimProgram*, double, size_t>, size_t> known;
  for (size_t rank = 0; rank < workload_.ranks.size(); ++rank) {
    const auto& program = workload_.ranks[rank].program;
    const auto straggler = stragglers.find(static_cast<int64_t>(rank));
    const double factor = straggler == stragglers.end() ? 1 : straggler->second;
    const auto [use, is_new] =
        known.emplace(std::tuple(program.get(), factor, stage_of[rank]), uses_.size());
    if (is_new) {
      uses_.push_back(MakeUse(program, factor));
      uses_.back().stage = stage_of[rank];
    }
    uses_[use->second].ranks.push_back(rank);
  }
}

RankUse RankVariants::MakeUse(const std::shared_ptr<const SimProgram>& program,
                              double factor) const {
  RankUse use{.program = program,
              .names = names_.of_nodes.at(program.get()),
              .ranks = {},
              .stage = 0,
              .own = {},
              .ideal = {}};
  for (const SimNode& node : program->nodes) {
    const auto duration = static_cast<double>(node.duration);
    use.own.push_back(node.kind == NodeKind::kCompute ? std::llround(duration * factor)
                                                      : node.duration);
  }
  use.ideal = use.own;
  return use;
}

// Finds the uses whose ranks do the same, whatever their times.
void RankVariants::FindKinds() {
  std::map<uint64_t, std::vector<size_t>> kinds;
  for (size_t i = 0; i < uses_.size(); ++i) {
    uint64_t hash = 0;
    for (size_t node = 0; node < uses_[i].own.size(); ++node) {
      const SimNode& of = uses_[i].program->nodes[node];
      const uint32_t name = uses_[i].names[node];
      if (of.kind == NodeKind::kCompute &&
          (name == WorkNames::kNoName || names_.names[name].is_label)) {
        continue;
      }
      hash = HashMix(HashMix(hash, static_cast<uint64_t>(of.kind)), name);
      hash = HashMix(hash, static_cast<uint64_t>(of.collective));
    }
    kinds[hash].push_back(i);
  }
  for (auto& [hash, uses] : kinds) kinds_.push_back(std::move(uses));
}

// Finds the mean times of ranks that do the same. Computations that some have more often than
// others, such as times between operators, get their share of the mean of the sums.
void RankVariants::FindIdeal(std::span<const size_t> kind) {
  double ranks = 0;
  for (const size_t use : kind) ranks += static_cast<double>(uses_[use].ranks.size());
  for (const size_t use : kind) uses_[use].like = ranks;
  std::vector<NodesByName> nodes;
  std::set<uint32_t> names;
  for (const size_t use : kind) {
    nodes.push_back(NodesOf(uses_[use]));
    for (const auto& [name, of] : nodes.back()) names.insert(name);
  }
  for (const uint32_t name : names) {
    size_t least = SIZE_MAX;
    size_t most = 0;
    double sum = 0;  // over all ranks
    for (size_t k = 0; k < kind.size(); ++k) {
      const std::vector<size_t>& of = nodes[k][name];
      least = std::min(least, of.size());
      most = std::max(most, of.size());
      sum += TimeOf(uses_[kind[k]], of) * static_cast<double>(uses_[kind[k]].ranks.size());
    }
    for (size_t i = 0; least == most && i < most; ++i) {
      double of_node = 0;
      for (size_t k = 0; k < kind.size(); ++k) {
        const RankUse& use = uses_[kind[k]];
        of_node +=
            static_cast<double>(use.own[nodes[k][name][i]]) * static_cast<double>(use.ranks.size());
      }
      for (size_t k = 0; k < kind.size(); ++k) {
        uses_[kind[k]].ideal[nodes[k][name][i]] = std::llround(of_node / ranks);
      }
    }
    for (size_t k = 0; least != most && k < kind.size(); ++k) {
      RankUse& use = uses_[kind[k]];
      const double own = TimeOf(use, nodes[k][name]);
      for (const size_t node : nodes[k][name]) {
        if (own > 0) {
          use.ideal[node] = std::llround(static_cast<double>(use.own[node]) * sum / ranks / own);
        }
      }
    }
  }
}

Result<int64_t> RankVariants::StepOf(const Duration& duration, std::span<const size_t> ranks,
                                     const Duration& of_ranks) {
  context_.Progress("simulate without stragglers: variants", done_++, all_);
  SimWorkload variant = workload_;
  for (const RankUse& use : uses_) {
    std::shared_ptr<const SimProgram> program;
    std::shared_ptr<const SimProgram> of_these;
    for (const size_t rank : use.ranks) {
      const bool is_one = std::ranges::find(ranks, rank) != ranks.end();
      std::shared_ptr<const SimProgram>& made = is_one ? of_these : program;
      if (!made) made = WithTimes(use, is_one ? of_ranks : duration);
      variant.ranks[rank].program = made;
    }
  }
  ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(machine_, variant, {.context = &quiet_}));
  if (result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
  int64_t step = 0;
  for (const SimRankResult& one : result.ranks) step = std::max(step, one.end);
  return step;
}

}  // namespace etude
