#include "src/jobs/shared_network.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/base/text/quantity.h"
#include "src/jobs/sim_warnings.h"
#include "src/jobs/simulated_files.h"
#include "src/report/tables/simulated/sharing_table.h"
#include "src/report/tables/simulated/sim_path_tables.h"
#include "src/report/tables/simulated/sim_tables.h"
#include "src/report/text/format.h"
#include "src/sim/result/account.h"
#include "src/sim/result/arrivals.h"
#include "src/sim/result/sharing.h"
#include "src/sim/result/sim_path.h"

namespace etude {
namespace {

using Places = std::vector<std::vector<int64_t>>;

// Tables that are the same for each simulated step.
constexpr std::string_view kTablesOfStep[] = {"collectives", "links"};

// Returns the places of jobs that take NPUs of `order`, one after the other.
Places InOrder(const std::vector<int64_t>& order, const std::vector<int64_t>& ranks) {
  Places places;
  auto next = order.begin();
  for (const int64_t count : ranks) {
    places.emplace_back(next, next + count);
    next += count;
  }
  return places;
}

// Returns the places of jobs that take the NPUs in turn, as long as they have ranks left.
Places InTurn(const std::vector<int64_t>& ranks) {
  Places places(ranks.size());
  const int64_t most = std::ranges::max(ranks);
  int64_t npu = 0;
  for (int64_t rank = 0; rank < most; ++rank) {
    for (size_t job = 0; job < ranks.size(); ++job) {
      if (rank < ranks[job]) places[job].push_back(npu++);
    }
  }
  return places;
}

tl::unexpected<Error> NoPlace(std::string_view text, const std::string& expected) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--place: found '{}', expected {}", text, expected));
}

Result<Places> ListedPlaces(std::string_view text, const std::vector<int64_t>& ranks,
                            int64_t npus) {
  Places places;
  std::vector<int64_t> user(static_cast<size_t>(npus), 0);  // number of the job on an NPU, from 1
  std::string_view rest = text;
  for (size_t job = 0; job < ranks.size(); ++job) {
    const size_t slash = rest.find('/');
    const std::string_view list = rest.substr(0, slash);
    if ((slash == std::string_view::npos) != (job + 1 == ranks.size())) {
      return NoPlace(text, fmt::format("packed, spread, random, random:SEED, or the NPUs of {}, "
                                       "separated by /",
                                       FormatCount(ranks.size(), "job")));
    }
    auto listed = ParseRanges(list, npus - 1);
    if (!listed) {
      return NoPlace(list, fmt::format("NPUs from 0 to {}, such as 0-3,8", npus - 1));
    }
    if (std::ssize(*listed) != ranks[job]) {
      return NoPlace(
          list, fmt::format("{} for job {}", FormatCount(static_cast<uint64_t>(ranks[job]), "NPU"),
                            job + 1));
    }
    for (const int64_t npu : *listed) {
      int64_t& before = user[static_cast<size_t>(npu)];
      if (before != 0) {
        return NoPlace(text, fmt::format("each NPU once, but NPU {} is in job {}{}", npu, before,
                                         before == static_cast<int64_t>(job) + 1
                                             ? " twice"
                                             : fmt::format(" and job {}", job + 1)));
      }
      before = static_cast<int64_t>(job) + 1;
    }
    places.push_back(*std::move(listed));
    if (slash != std::string_view::npos) rest.remove_prefix(slash + 1);
  }
  return places;
}

Result<SimJob> ReadOne(const SimJobOptions& options, bool strict, const RunContext& context) {
  SimJobOptions of_files = options;
  // Files instead of their prefix: a job whose communications match.
  ETUDE_ASSIGN_OR_RETURN(of_files.paths, FilesOfPrefixes(options.paths));
  return ReadSimJob(of_files, /*npus=*/0, strict, context);
}

// Returns names of nodes, from the job of an NPU. The jobs must outlive the result.
SimNodeNames NamesOf(const std::vector<SimJob>& jobs, const Places& places, int64_t npus,
                     bool strict, const RunContext& context) {
  struct At {
    size_t job = 0;
    int64_t rank = -1;  // -1: idle
  };
  std::vector<At> at(static_cast<size_t>(npus));
  for (size_t job = 0; job < places.size(); ++job) {
    for (size_t rank = 0; rank < places[job].size(); ++rank) {
      at[static_cast<size_t>(places[job][rank])] = {.job = job, .rank = static_cast<int64_t>(rank)};
    }
  }
  std::vector<SimNodeNames> names;
  for (const SimJob& job : jobs) names.push_back(NamesOfSimJob(job, strict, context));
  return [&jobs, at = std::move(at), names = std::move(names)](int64_t npu, uint32_t node) {
    const At& here = at[static_cast<size_t>(npu)];
    if (here.rank < 0) return std::string();
    const SimRank& rank = jobs[here.job].workload.ranks[static_cast<size_t>(here.rank)];
    // Programs are repeated.
    const auto count = static_cast<uint32_t>(rank.program->nodes.size());
    return names[here.job](here.rank, node % count);
  };
}

}  // namespace

Result<Places> PlacesOf(std::string_view text, const std::vector<int64_t>& ranks, int64_t npus) {
  const int64_t needed = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  if (needed > npus) {
    return BadInput(fmt::format("found {} of {}, but the network has {}",
                                FormatCount(static_cast<uint64_t>(needed), "rank"),
                                FormatCount(ranks.size(), "job"),
                                FormatCount(static_cast<uint64_t>(npus), "NPU")));
  }
  std::vector<int64_t> order(static_cast<size_t>(npus));
  std::iota(order.begin(), order.end(), 0);
  if (text.empty() || text == "packed") return InOrder(order, ranks);
  if (text == "spread") return InTurn(ranks);
  constexpr std::string_view kRandom = "random";
  if (!text.starts_with(kRandom)) return ListedPlaces(text, ranks, npus);
  std::string_view seed = text.substr(kRandom.size());
  if (!seed.empty() && seed.front() == ':') seed.remove_prefix(1);
  const auto number = ParseWhole(text == kRandom ? "0" : seed);
  if (!number || *number < 0) return NoPlace(text, "random, or a seed such as random:7");
  RandomStream random(static_cast<uint64_t>(*number));
  Shuffle(std::span(order), random);
  return InOrder(order, ranks);
}

std::vector<std::string> SharedNetworkTables() {
  std::vector<std::string> keys{std::string(kSharingTable)};
  keys.insert(keys.end(), std::begin(kTablesOfStep), std::end(kTablesOfStep));
  keys.insert(keys.end(), kSimPathTables.begin(), kSimPathTables.end());
  return keys;
}

Result<SharedNetwork> SimulateShared(const SharedNetworkOptions& options, const SimJobOptions& job,
                                     const SimMachine& machine, bool strict,
                                     const RunContext& context) {
  if (machine.graph == nullptr && !machine.congestion) {
    return MakeError(ErrorCode::kUsage,
                     "simulate: --beside and --place require --model etude-1 or --congestion "
                     "aware: with others, messages of jobs do not share links");
  }
  SharedNetwork shared;
  std::vector<SimJob> jobs;
  const auto add = [&](const SimJobOptions& one) -> Status {
    ETUDE_ASSIGN_OR_RETURN(jobs.emplace_back(), ReadOne(one, strict, context));
    shared.names.push_back(one.paths.front());
    for (const std::string& note : jobs.back().notes) {
      shared.notes.push_back(fmt::format("{}: {}", shared.names.back(), note));
    }
    return {};
  };
  ETUDE_RETURN_IF_ERROR(add(job));
  for (const std::string& path : options.beside) {
    SimJobOptions other = job;
    other.paths = {path};
    other.groups.clear();
    ETUDE_RETURN_IF_ERROR(add(other));
  }
  std::vector<int64_t> ranks;
  for (const SimJob& one : jobs) ranks.push_back(std::ssize(one.workload.ranks));
  shared.ranks = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  ETUDE_ASSIGN_OR_RETURN(const Places places, PlacesOf(options.place, ranks, machine.npus()));
  for (const auto& [npu, factor] : machine.stragglers) {
    const bool is_used = std::ranges::any_of(places, [&](const std::vector<int64_t>& npus) {
      return std::ranges::count(npus, npu) > 0;
    });
    if (!is_used) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--straggler: NPU {} has no rank; with --beside and --place "
                                   "numbers are those of NPUs",
                                   npu));
    }
  }
  for (const SimJob& one : jobs) {
    ETUDE_RETURN_IF_ERROR(CheckRoofline("--system", machine, one.workload));
  }
  std::vector<PlacedJob> placed;
  for (size_t i = 0; i < jobs.size(); ++i) {
    placed.push_back({.workload = &jobs[i].workload, .npus = places[i]});
  }
  ETUDE_ASSIGN_OR_RETURN(const SharingStudy study,
                         StudySharing(machine, placed, shared.names, context));
  shared.tables.push_back(SharingTable(study, shared.names, placed));
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (study.jobs[i].steps < kMostSharingSteps) continue;
    shared.notes.push_back(
        fmt::format("{}: only {} steps are simulated, which may end before the longest job does",
                    shared.names[i], FormatCount(uint64_t{kMostSharingSteps})));
  }
  const Arrivals arrivals(machine, study.workload, study.result);
  const SimAccount account = AccountOf(study.workload, study.result, arrivals);
  shared.time = account.step;
  for (Table& table : SimTables(machine, study.workload, study.result, account)) {
    if (std::ranges::count(kTablesOfStep, table.key) > 0) shared.tables.push_back(std::move(table));
  }
  const SimNodeNames names = NamesOf(jobs, places, machine.npus(), strict, context);
  const SimPath path = FindSimPath(machine, study.workload, study.result);
  for (Table& table : SimPathTables(path, study.workload, names)) {
    shared.tables.push_back(std::move(table));
  }
  return shared;
}

}  // namespace etude
