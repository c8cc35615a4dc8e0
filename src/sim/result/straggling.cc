#include "src/sim/result/straggling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/container/hash.h"

namespace etude {
namespace {

constexpr uint32_t kNoName = UINT32_MAX;

// Ranks with the same program and factor.
struct Use {
  std::shared_ptr<const SimProgram> program;
  std::span<const uint32_t> names;
  std::vector<size_t> ranks;
  std::vector<int64_t> own;    // durations by node, with the machine's factor
  std::vector<int64_t> ideal;  // likewise
  double like = 1;             // number of ranks that do the same

  // Returns the mean time of the other ranks that do the same; its own without any.
  int64_t OfOthers(size_t node) const {
    if (like <= 1) return own[node];
    const auto all = static_cast<double>(ideal[node]) * like;
    return std::max<int64_t>(std::llround((all - static_cast<double>(own[node])) / (like - 1)), 0);
  }
};

// Durations of the computations of one name in a program, by node.
using NodesByName = std::map<uint32_t, std::vector<size_t>>;

NodesByName NodesOf(const Use& use) {
  NodesByName nodes;
  for (size_t i = 0; i < use.names.size(); ++i) {
    if (use.names[i] != kNoName) nodes[use.names[i]].push_back(i);
  }
  return nodes;
}

class Study {
 public:
  Study(const SimMachine& machine, const SimWorkload& workload, const WorkNames& names,
        const RunContext& context)
      : machine_(machine), workload_(workload), names_(names), context_(context) {
    machine_.stragglers.clear();  // part of the durations
    quiet_ = context;
    quiet_.progress = nullptr;
    FindUses(machine.stragglers);
  }

  Result<StragglerStudy> Run() {
    StragglerStudy study;
    for (const std::vector<size_t>& kind : Kinds()) {
      ++study.kinds;
      size_t ranks = 0;
      for (const size_t use : kind) ranks += uses_[use].ranks.size();
      if (ranks == 1) ++study.unlike;
      FindIdeal(kind, static_cast<double>(ranks));
    }
    if (study.unlike == workload_.ranks.size()) {
      return BadInput("--ideal: found no two ranks that do the same, expected such ranks");
    }
    const std::vector<size_t> ranks = SlowRanks();
    const std::vector<uint32_t> operators = SlowOperators();
    all_ = 1 + 2 * (ranks.size() + operators.size());
    ETUDE_ASSIGN_OR_RETURN(study.ideal,
                           StepOf([](const Use& use, size_t node) { return use.ideal[node]; }));
    const auto own = [](const Use& use, size_t node) { return use.own[node]; };
    const auto ideal = [](const Use& use, size_t node) { return use.ideal[node]; };
    const auto of_others = [](const Use& use, size_t node) { return use.OfOthers(node); };
    for (const size_t rank : ranks) {
      Straggling& found =
          study.ranks.emplace_back(Straggling{.what = fmt::format("rank {}", rank)});
      ETUDE_ASSIGN_OR_RETURN(found.alone, StepOf(ideal, rank, own));
      ETUDE_ASSIGN_OR_RETURN(found.mended, StepOf(own, rank, of_others));
    }
    for (const uint32_t name : operators) {
      Straggling& found = study.operators.emplace_back(Straggling{.what = names_.names[name].text});
      ETUDE_ASSIGN_OR_RETURN(found.alone, StepOf([&](const Use& use, size_t node) {
                               return use.names[node] == name ? use.own[node] : use.ideal[node];
                             }));
      ETUDE_ASSIGN_OR_RETURN(found.mended, StepOf([&](const Use& use, size_t node) {
                               return use.names[node] == name ? use.ideal[node] : use.own[node];
                             }));
    }
    std::ranges::stable_sort(study.ranks, std::greater<>(), &Straggling::alone);
    std::ranges::stable_sort(study.operators, std::greater<>(), &Straggling::alone);
    return study;
  }

 private:
  void FindUses(const std::map<int64_t, double>& stragglers) {
    std::map<std::pair<const SimProgram*, double>, size_t> known;
    for (size_t rank = 0; rank < workload_.ranks.size(); ++rank) {
      const auto& program = workload_.ranks[rank].program;
      const auto straggler = stragglers.find(static_cast<int64_t>(rank));
      const double factor = straggler == stragglers.end() ? 1 : straggler->second;
      const auto [use, is_new] = known.emplace(std::pair(program.get(), factor), uses_.size());
      if (is_new) uses_.push_back(MakeUse(program, factor));
      uses_[use->second].ranks.push_back(rank);
    }
  }

  Use MakeUse(const std::shared_ptr<const SimProgram>& program, double factor) const {
    Use use{.program = program,
            .names = names_.of_nodes.at(program.get()),
            .ranks = {},
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

  // Returns the uses whose ranks do the same: the same operators and communications in the same
  // order, whatever their times.
  std::vector<std::vector<size_t>> Kinds() const {
    std::map<uint64_t, std::vector<size_t>> kinds;
    for (size_t i = 0; i < uses_.size(); ++i) {
      uint64_t hash = 0;
      for (size_t node = 0; node < uses_[i].own.size(); ++node) {
        const SimNode& of = uses_[i].program->nodes[node];
        const uint32_t name = uses_[i].names[node];
        if (of.kind == NodeKind::kCompute && (name == kNoName || names_.names[name].is_label)) {
          continue;
        }
        hash = HashMix(HashMix(hash, static_cast<uint64_t>(of.kind)), name);
        hash = HashMix(hash, static_cast<uint64_t>(of.collective));
      }
      kinds[hash].push_back(i);
    }
    std::vector<std::vector<size_t>> found;
    for (auto& [hash, uses] : kinds) found.push_back(std::move(uses));
    return found;
  }

  // Finds the mean times of ranks that do the same. Computations that some have more often than
  // others, such as times between operators, get their share of the mean of the sums.
  void FindIdeal(std::span<const size_t> kind, double ranks) {
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
        sum += SumOf(uses_[kind[k]], of) * static_cast<double>(uses_[kind[k]].ranks.size());
      }
      for (size_t i = 0; least == most && i < most; ++i) {
        double of_node = 0;
        for (size_t k = 0; k < kind.size(); ++k) {
          const Use& use = uses_[kind[k]];
          of_node += static_cast<double>(use.own[nodes[k][name][i]]) *
                     static_cast<double>(use.ranks.size());
        }
        for (size_t k = 0; k < kind.size(); ++k) {
          uses_[kind[k]].ideal[nodes[k][name][i]] = std::llround(of_node / ranks);
        }
      }
      for (size_t k = 0; least != most && k < kind.size(); ++k) {
        Use& use = uses_[kind[k]];
        const double own = SumOf(use, nodes[k][name]);
        for (const size_t node : nodes[k][name]) {
          if (own > 0) {
            use.ideal[node] = std::llround(static_cast<double>(use.own[node]) * sum / ranks / own);
          }
        }
      }
    }
  }

  static double SumOf(const Use& use, std::span<const size_t> nodes) {
    double sum = 0;
    for (const size_t node : nodes) sum += static_cast<double>(use.own[node]);
    return sum;
  }

  // Returns those with most time above the mean.
  template <typename Key>
  static std::vector<Key> Most(const std::map<Key, int64_t>& above) {
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
  std::vector<size_t> SlowRanks() const {
    std::map<size_t, int64_t> above;
    for (const Use& use : uses_) {
      int64_t time = 0;
      for (size_t i = 0; i < use.own.size(); ++i) time += use.own[i] - use.ideal[i];
      for (const size_t rank : use.ranks) above[rank] = time;
    }
    return Most(above);
  }
  std::vector<uint32_t> SlowOperators() const {
    std::map<uint32_t, int64_t> above;
    for (const Use& use : uses_) {
      for (size_t i = 0; i < use.own.size(); ++i) {
        if (use.names[i] == kNoName) continue;
        const int64_t time = std::max<int64_t>(use.own[i] - use.ideal[i], 0);
        above[use.names[i]] += time * static_cast<int64_t>(use.ranks.size());
      }
    }
    return Most(above);
  }

  // Returns the step in which node `node` of a rank takes `duration(use, node)`, and
  // `of_rank(use, node)` on the rank `rank`. kInterrupted if the context is.
  template <typename Duration, typename OfRank>
  Result<int64_t> StepOf(Duration duration, size_t rank, OfRank of_rank) {
    context_.Progress("simulate without stragglers: variants", done_++, all_);
    SimWorkload variant = workload_;
    for (const Use& use : uses_) {
      const auto program = With(use, duration);
      for (const size_t of : use.ranks) {
        variant.ranks[of].program = of == rank ? With(use, of_rank) : program;
      }
    }
    ETUDE_ASSIGN_OR_RETURN(const SimResult result,
                           Simulate(machine_, variant, {.context = &quiet_}));
    if (result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
    int64_t step = 0;
    for (const SimRankResult& one : result.ranks) step = std::max(step, one.end);
    return step;
  }

  template <typename Duration>
  Result<int64_t> StepOf(Duration duration) {
    return StepOf(duration, SIZE_MAX, duration);
  }

  template <typename Duration>
  static std::shared_ptr<const SimProgram> With(const Use& use, Duration duration) {
    auto program = std::make_shared<SimProgram>(*use.program);
    for (size_t i = 0; i < program->nodes.size(); ++i) {
      program->nodes[i].duration = duration(use, i);
    }
    return program;
  }

  SimMachine machine_;
  const SimWorkload& workload_;
  const WorkNames& names_;
  const RunContext& context_;
  RunContext quiet_;
  std::vector<Use> uses_;
  size_t done_ = 0;  // variants
  size_t all_ = 0;
};

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
        names->second.push_back(kNoName);
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

Result<StragglerStudy> StudyStragglers(const SimMachine& machine, const SimWorkload& workload,
                                       const WorkNames& names, const RunContext& context) {
  return Study(machine, workload, names, context).Run();
}

}  // namespace etude
