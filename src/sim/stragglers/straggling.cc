#include "src/sim/stragglers/straggling.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "src/sim/stragglers/pipeline_stages.h"

namespace etude {
namespace {

int64_t OwnTime(const RankUse& use, size_t node) { return use.own[node]; }
int64_t IdealTime(const RankUse& use, size_t node) { return use.ideal[node]; }

// Returns those with most time above the mean.
template <typename Key>
std::vector<Key> MostAbove(const std::map<Key, int64_t>& above) {
  std::vector<std::pair<int64_t, Key>> sorted;
  for (const auto& [key, time] : above) {
    if (time > 0) sorted.emplace_back(-time, key);
  }
  std::ranges::sort(sorted);
  sorted.resize(std::min(sorted.size(), kMostStraggling));
  std::vector<Key> keys;
  for (const auto& [time, key] : sorted) keys.push_back(key);
  return keys;
}

// Returns the time above the mean by rank.
std::map<size_t, int64_t> RanksAbove(const RankVariants& times) {
  std::map<size_t, int64_t> above;
  for (const RankUse& use : times.uses()) {
    int64_t time = 0;
    for (size_t i = 0; i < use.own.size(); ++i) time += use.own[i] - use.ideal[i];
    for (const size_t rank : use.ranks) above[rank] = time;
  }
  return above;
}

// Returns the time above the mean by stage, of ranks that take longer.
std::map<size_t, int64_t> StagesAbove(const RankVariants& times, const PipelineStages& stages) {
  const std::map<size_t, int64_t> ranks = RanksAbove(times);
  std::map<size_t, int64_t> above;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const size_t rank : stages[stage]) {
      above[stage] += std::max<int64_t>(ranks.at(rank), 0);
    }
  }
  return above;
}

// Returns the time above the mean by name.
std::map<uint32_t, int64_t> OperatorsAbove(const RankVariants& times) {
  std::map<uint32_t, int64_t> above;
  for (const RankUse& use : times.uses()) {
    for (size_t i = 0; i < use.own.size(); ++i) {
      if (use.names[i] == WorkNames::kNoName) continue;
      const int64_t time = std::max<int64_t>(use.own[i] - use.ideal[i], 0);
      above[use.names[i]] += time * static_cast<int64_t>(use.ranks.size());
    }
  }
  return above;
}

}  // namespace

Result<StragglerStudy> StudyStragglers(const SimMachine& machine, const SimWorkload& workload,
                                       const WorkNames& names, const RunContext& context) {
  const PipelineStages stages = FindPipelineStages(workload);
  RankVariants times(machine, workload, names, stages, context);
  StragglerStudy study{.kinds = times.kinds().size()};
  for (const std::vector<size_t>& kind : times.kinds()) {
    if (times.uses()[kind.front()].like <= 1) ++study.unlike;
  }
  if (study.unlike == times.rank_count() && stages.empty()) {
    return BadInput(
        "--ideal: found no two ranks that do the same, expected such ranks, or stages of a "
        "pipeline");
  }
  const std::vector<size_t> ranks = MostAbove(RanksAbove(times));
  const std::vector<size_t> slow_stages = MostAbove(StagesAbove(times, stages));
  const std::vector<uint32_t> operators = MostAbove(OperatorsAbove(times));
  times.Expect(2 + 2 * (ranks.size() + slow_stages.size() + operators.size()));
  ETUDE_ASSIGN_OR_RETURN(const int64_t step, times.StepOf(OwnTime));
  ETUDE_ASSIGN_OR_RETURN(study.ideal, times.StepOf(IdealTime));
  const auto of_others = [](const RankUse& use, size_t node) { return use.OfOthers(node); };
  for (const size_t rank : ranks) {
    Straggling& found = study.ranks.emplace_back(Straggling{.what = fmt::format("rank {}", rank)});
    ETUDE_ASSIGN_OR_RETURN(found.alone, times.StepOf(IdealTime, {{rank}}, OwnTime));
    ETUDE_ASSIGN_OR_RETURN(found.mended, times.StepOf(OwnTime, {{rank}}, of_others));
  }
  for (const size_t stage : slow_stages) {
    Straggling& found =
        study.stages.emplace_back(Straggling{.what = fmt::format("stage {}", stage)});
    ETUDE_ASSIGN_OR_RETURN(found.alone, times.StepOf(IdealTime, stages[stage], OwnTime));
    ETUDE_ASSIGN_OR_RETURN(found.mended, times.StepOf(OwnTime, stages[stage], IdealTime));
  }
  for (const uint32_t name : operators) {
    Straggling& found = study.operators.emplace_back(Straggling{.what = names.names[name].text});
    ETUDE_ASSIGN_OR_RETURN(found.alone, times.StepOf([&](const RankUse& use, size_t node) {
      return use.names[node] == name ? use.own[node] : use.ideal[node];
    }));
    ETUDE_ASSIGN_OR_RETURN(found.mended, times.StepOf([&](const RankUse& use, size_t node) {
      return use.names[node] == name ? use.ideal[node] : use.own[node];
    }));
  }
  std::ranges::stable_sort(study.ranks, std::greater<>(), &Straggling::alone);
  std::ranges::stable_sort(study.stages, std::greater<>(), &Straggling::alone);
  std::ranges::stable_sort(study.operators, std::greater<>(), &Straggling::alone);
  ETUDE_ASSIGN_OR_RETURN(study.remedies, FindRemedies(stages, step, times));
  return study;
}

}  // namespace etude
