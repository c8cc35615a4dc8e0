#include "src/sim/stragglers/remedies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"

namespace etude {
namespace {

bool IsWork(const RankUse& use, size_t node) {
  return use.program->nodes[node].kind == NodeKind::kCompute;
}

int64_t ScaledTime(int64_t time, double factor) {
  return std::llround(static_cast<double>(time) * factor);
}

class RemedyFinder {
 public:
  RemedyFinder(const PipelineStages& stages, int64_t step, RankVariants& times)
      : stages_(stages), step_(step), times_(times) {}

  Result<std::vector<Remedy>> Run() {
    if (!stages_.empty()) ETUDE_RETURN_IF_ERROR(BalanceStages());
    ETUDE_RETURN_IF_ERROR(BalanceSequences());
    ETUDE_RETURN_IF_ERROR(PlanPauses());
    return std::move(found_);
  }

 private:
  size_t IndexOf(const RankUse& use) const {
    return static_cast<size_t>(&use - times_.uses().data());
  }

  Status BalanceStages() {
    std::vector<double> of_stages(stages_.size());
    for (const RankUse& use : times_.uses()) {
      double time = 0;
      for (size_t i = 0; i < use.own.size(); ++i) {
        if (IsWork(use, i)) time += static_cast<double>(use.own[i]);
      }
      of_stages[use.stage] += time * static_cast<double>(use.ranks.size()) /
                              static_cast<double>(stages_[use.stage].size());
    }
    double mean = 0;
    for (const double time : of_stages) mean += time / static_cast<double>(stages_.size());
    const auto slowest = std::ranges::max_element(of_stages);
    if (*std::ranges::min_element(of_stages) <= 0 || *slowest <= mean) return {};
    times_.Expect(1);
    ETUDE_ASSIGN_OR_RETURN(
        const int64_t balanced, times_.StepOf([&](const RankUse& use, size_t node) {
          return IsWork(use, node) ? ScaledTime(use.own[node], mean / of_stages[use.stage])
                                   : use.own[node];
        }));
    found_.push_back({.what = "stage re-balance",
                      .step = balanced,
                      .basis = fmt::format("stage {} takes {:.1f} % more than the mean of {}",
                                           slowest - of_stages.begin(), (*slowest / mean - 1) * 100,
                                           FormatCount(stages_.size(), "stage"))});
    return {};
  }

  Status BalanceSequences() {
    bool is_known = false;
    std::vector<std::set<size_t>> uneven(times_.uses().size());  // nodes by use
    uint64_t count = 0;
    for (const std::vector<size_t>& kind : times_.kinds()) {
      std::vector<NodesByName> nodes;
      for (const size_t use : kind) nodes.push_back(NodesOf(times_.uses()[use]));
      for (const auto& [name, first] : nodes.front()) {
        for (size_t i = 0; i < first.size(); ++i) {
          const int64_t flops = FlopsOf(kind.front(), first[i]);
          is_known = is_known || flops > 0;
          bool differs = false;
          for (size_t k = 1; k < kind.size(); ++k) {
            const auto of = nodes[k].find(name);
            const bool fits = of != nodes[k].end() && of->second.size() == first.size();
            differs = differs || (fits && FlopsOf(kind[k], of->second[i]) != flops);
          }
          if (!differs) continue;
          ++count;
          for (size_t k = 0; k < kind.size(); ++k) {
            const auto of = nodes[k].find(name);
            if (of != nodes[k].end() && i < of->second.size())
              uneven[kind[k]].insert(of->second[i]);
          }
        }
      }
    }
    Remedy remedy{.what = "sequence re-balance", .step = std::nullopt, .basis = ""};
    if (!is_known) {
      remedy.basis = "no FLOPs; recorded jobs get them with --compute flops";
      found_.push_back(std::move(remedy));
      return {};
    }
    if (count == 0) return {};
    times_.Expect(1);
    ETUDE_ASSIGN_OR_RETURN(remedy.step, times_.StepOf([&](const RankUse& use, size_t node) {
      return uneven[IndexOf(use)].contains(node) ? use.ideal[node] : use.own[node];
    }));
    remedy.basis =
        fmt::format("{} with unequal FLOPs on like ranks", FormatCount(count, "computation"));
    found_.push_back(std::move(remedy));
    return {};
  }

  int64_t FlopsOf(size_t use, size_t node) const {
    return times_.uses()[use].program->nodes[node].flops;
  }

  // Time that a use waits, over nodes that count together.
  struct Waiting {
    size_t use = 0;
    std::vector<size_t> nodes;
    int64_t time = 0;
  };

  // Adds the remedy of planned pauses: finds by how much each node is shorter without pauses.
  Status PlanPauses() {
    const auto least = static_cast<int64_t>(kLeastPause * static_cast<double>(step_));
    std::vector<std::map<size_t, double>> factors(times_.uses().size());  // by use and node
    std::vector<int64_t> pauses(times_.uses().size());
    for (const std::vector<size_t>& kind : times_.kinds()) {
      if (times_.uses()[kind.front()].like <= 1) continue;
      for (const std::vector<Waiting>& compared : WaitingsOf(kind)) {
        const int64_t median = LowerMedian(compared);
        for (const Waiting& one : compared) {
          const int64_t longer = one.time - median;
          if (longer < std::max<int64_t>(least, 1) || longer < median) continue;
          pauses[one.use] += longer;
          for (const size_t node : one.nodes) {
            factors[one.use][node] = static_cast<double>(median) / static_cast<double>(one.time);
          }
        }
      }
    }
    uint64_t ranks = 0;
    for (size_t i = 0; i < pauses.size(); ++i) {
      if (pauses[i] > 0) ranks += times_.uses()[i].ranks.size();
    }
    if (ranks == 0) return {};
    times_.Expect(1);
    ETUDE_ASSIGN_OR_RETURN(
        const int64_t without, times_.StepOf([&](const RankUse& use, size_t node) {
          const auto& of = factors[IndexOf(use)];
          const auto factor = of.find(node);
          return factor == of.end() ? use.own[node] : ScaledTime(use.own[node], factor->second);
        }));
    const int64_t longest = *std::ranges::max_element(pauses);
    found_.push_back(
        {.what = "planned garbage collection",
         .step = without + longest,
         .basis = fmt::format("pauses of the host on {} of {}, at once on all", FormatCount(ranks),
                              FormatCount(times_.rank_count(), "rank"))});
    return {};
  }

  // Returns the times of labels and between operators that ranks of a kind have in common: one by
  // one if all have as many of a name, else their sums.
  std::vector<std::vector<Waiting>> WaitingsOf(const std::vector<size_t>& kind) const {
    std::map<uint32_t, std::vector<Waiting>> by_name;
    for (const size_t use : kind) {
      for (auto& [name, nodes] : NodesOf(times_.uses()[use])) {
        if (!times_.names().names[name].is_label) continue;
        by_name[name].push_back({.use = use, .nodes = nodes});
      }
    }
    std::vector<std::vector<Waiting>> all;
    for (auto& [name, sums] : by_name) {
      const size_t count = sums.front().nodes.size();
      const bool is_same =
          sums.size() == kind.size() &&
          std::ranges::all_of(sums, [&](const Waiting& one) { return one.nodes.size() == count; });
      for (size_t i = 0; is_same && i < count; ++i) {
        std::vector<Waiting>& compared = all.emplace_back();
        for (const Waiting& one : sums) {
          compared.push_back({.use = one.use, .nodes = {one.nodes[i]}});
        }
      }
      if (!is_same && sums.size() == kind.size()) all.push_back(std::move(sums));
    }
    for (std::vector<Waiting>& compared : all) {
      for (Waiting& one : compared) {
        for (const size_t node : one.nodes) one.time += times_.uses()[one.use].own[node];
      }
    }
    return all;
  }

  // Returns the median over ranks, the lower one of two.
  int64_t LowerMedian(const std::vector<Waiting>& compared) const {
    std::vector<std::pair<int64_t, size_t>> sorted;  // with the number of ranks
    size_t ranks = 0;
    for (const Waiting& one : compared) {
      sorted.emplace_back(one.time, times_.uses()[one.use].ranks.size());
      ranks += sorted.back().second;
    }
    std::ranges::sort(sorted);
    size_t before = 0;
    for (const auto& [time, count] : sorted) {
      before += count;
      if (2 * before >= ranks) return time;
    }
    return 0;
  }

  const PipelineStages& stages_;
  int64_t step_;
  RankVariants& times_;
  std::vector<Remedy> found_;
};

}  // namespace

Result<std::vector<Remedy>> FindRemedies(const PipelineStages& stages, int64_t step,
                                         RankVariants& times) {
  return RemedyFinder(stages, step, times).Run();
}

}  // namespace etude
