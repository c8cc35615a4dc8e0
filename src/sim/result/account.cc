#include "src/sim/result/account.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/base/container/intervals.h"
#include "src/sim/result/arrivals.h"

namespace etude {
namespace {

// Instants of a rank by kind.
struct Instants {
  std::vector<Interval> compute;
  std::vector<Interval> communication;
  std::vector<Interval> memory;
  std::vector<Interval> host;
  std::vector<Interval> waiting;
};

Instants InstantsOf(const SimProgram& program, const SimResult& result, const Arrivals& arrivals,
                    size_t rank_class, int64_t step) {
  const SimRankResult& done = result.ranks[rank_class];
  Instants instants;
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    const int64_t begin = done.begins[i];
    if (begin < 0) continue;
    const bool ended = done.ends[i] >= 0;
    const int64_t end = ended ? done.ends[i] : step;
    const auto add = [](std::vector<Interval>& to, int64_t from, int64_t until) {
      to.push_back({Nanos{from}, Nanos{until}});
    };
    const SimNode& node = program.nodes[i];
    switch (node.kind) {
      case NodeKind::kMetadata:
      case NodeKind::kUnknown: break;
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: add(instants.memory, begin, end); break;
      case NodeKind::kCollective:
      case NodeKind::kSend:
      case NodeKind::kRecv: {
        // Unfinished nodes are waited for, unless the simulation was stopped.
        const int64_t come =
            result.stopped || ended ? std::min(end, arrivals.Of(rank_class, i)) : end;
        add(instants.waiting, begin, come);
        add(instants.communication, come, end);
        break;
      }
      default: add(node.on_host ? instants.host : instants.compute, begin, end);
    }
  }
  return instants;
}

SimTimes TimesOf(Instants instants, bool finished, int64_t end, int64_t step) {
  const TimeSet compute(std::move(instants.compute));
  const TimeSet communication(std::move(instants.communication));
  const TimeSet memory(std::move(instants.memory));
  const TimeSet host(std::move(instants.host));
  const TimeSet waiting(std::move(instants.waiting));
  SimTimes times{.compute = compute.length().count,
                 .communication = communication.length().count,
                 .memory = memory.length().count,
                 .host = host.length().count};
  TimeSet busy = compute;
  const auto beyond = [&](const TimeSet& more) {
    const int64_t before = busy.length().count;
    busy = busy.Or(more);
    return busy.length().count - before;
  };
  times.exposed_communication = beyond(communication);
  times.exposed_memory = beyond(memory);
  times.host_wait = beyond(host);
  times.late_wait = beyond(waiting);
  times.early = finished ? step - end : 0;
  times.other_wait = step - busy.length().count - times.early;
  return times;
}

}  // namespace

SimAccount AccountOf(const SimWorkload& workload, const SimResult& result,
                     const Arrivals& arrivals) {
  SimAccount account;
  for (const SimRankResult& rank : result.ranks) {
    for (const std::vector<int64_t>* times : {&rank.begins, &rank.ends}) {
      if (!times->empty()) account.step = std::max(account.step, std::ranges::max(*times));
    }
  }
  if (result.stopped) account.step = std::max(account.step, result.time);
  const std::vector<int64_t> counts = result.ClassSizes();
  for (size_t i = 0; i < result.ranks.size(); ++i) {
    const SimRankResult& done = result.ranks[i];
    const int64_t first = result.first[i];
    const SimProgram& program = *workload.ranks[static_cast<size_t>(first)].program;
    account.classes.push_back(
        {.first = first,
         .ranks = counts[i],
         .finished = done.finished,
         .end = result.stopped && !done.finished ? std::nullopt : std::optional(done.wall),
         .times = TimesOf(InstantsOf(program, result, arrivals, i, account.step), done.finished,
                          done.wall, account.step)});
  }
  account.collectives = arrivals.collectives();
  return account;
}

SimClassAccount MeanOf(const SimAccount& account) {
  __extension__ using Wide = __int128;
  SimClassAccount mean;
  Wide ranks = 0;
  for (const SimClassAccount& one : account.classes) ranks += one.ranks;
  const auto sum_of = [&](auto figure) {
    Wide sum = 0;
    for (const SimClassAccount& one : account.classes) sum += Wide{figure(one)} * one.ranks;
    return sum;
  };
  if (std::ranges::all_of(account.classes, [](const auto& one) { return one.end.has_value(); })) {
    const Wide sum = sum_of([](const SimClassAccount& one) { return *one.end; });
    mean.end = static_cast<int64_t>(sum / ranks);
  }
  SimTimes& times = mean.times;
  const auto take = [&](int64_t SimTimes::*time) {
    const Wide sum = sum_of([&](const SimClassAccount& one) { return one.times.*time; });
    times.*time = static_cast<int64_t>(sum / ranks);
    return sum % ranks;
  };
  // The remainders of the parts add up to whole nanoseconds.
  std::vector<std::pair<Wide, int64_t SimTimes::*>> parts;
  int64_t left = account.step;
  for (int64_t SimTimes::*time :
       {&SimTimes::compute, &SimTimes::exposed_communication, &SimTimes::exposed_memory,
        &SimTimes::host_wait, &SimTimes::late_wait, &SimTimes::early, &SimTimes::other_wait}) {
    parts.emplace_back(take(time), time);
    left -= times.*time;
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < parts.size() && left > 0; ++i, --left) ++(times.*parts[i].second);
  take(&SimTimes::communication);
  take(&SimTimes::memory);
  take(&SimTimes::host);
  times.communication = std::max(times.communication, times.exposed_communication);
  times.memory = std::max(times.memory, times.exposed_memory);
  times.host = std::max(times.host, times.host_wait);
  return mean;
}

double AlgorithmBytes(CollectiveType type, int64_t bytes, int64_t members) {
  const auto size = static_cast<double>(bytes);
  const bool is_of_all = type == CollectiveType::kAllGather || type == CollectiveType::kGather;
  return is_of_all ? size * static_cast<double>(members) : size;
}

double BusFactor(CollectiveType type, int64_t members) {
  const double share = 1 - 1 / static_cast<double>(std::max<int64_t>(members, 1));
  switch (type) {
    case CollectiveType::kAllReduce: return 2 * share;
    case CollectiveType::kAllGather:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kGather:
    case CollectiveType::kScatter:
    case CollectiveType::kAllToAll: return share;
    default: return 1;
  }
}

}  // namespace etude
