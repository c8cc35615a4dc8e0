#include "src/formats/profile/comm_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace etude {
namespace {

using Kernels = std::vector<StrayKernel>;
using Calls = std::vector<StrayCall>;

bool MayBe(CollectiveType kernel, CollectiveType call) {
  if (kernel == CollectiveType::kUnknown || call == CollectiveType::kUnknown) return true;
  // NCCL has no separate kernel for barriers.
  return kernel == call ||
         (kernel == CollectiveType::kAllReduce && call == CollectiveType::kBarrier);
}

bool Fit(const Kernels& kernels, const Calls& calls) {
  return std::ranges::equal(kernels, calls, [](const StrayKernel& kernel, const StrayCall& call) {
    return MayBe(kernel.type, call.type) && kernel.end > call.start;
  });
}

void Pair(const Kernels& kernels, const Calls& calls, std::vector<OrderedPair>& pairs) {
  for (size_t i = 0; i < kernels.size(); ++i) pairs.push_back({kernels[i].node, calls[i].node});
}

template <typename Key, typename Row>
std::vector<Row> AllOf(const std::map<Key, std::vector<Row>>& parts) {
  std::vector<Row> all;
  for (const auto& [key, part] : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::stable_sort(all, {}, [](const Row& row) { return std::pair(row.start, row.node); });
  return all;
}

// Returns a stream and a group that match unambiguously: one of the two fits only the other, and no
// third one fits only that.
std::optional<std::pair<LaneId, StringId>> OnlyMatch(const std::map<LaneId, Kernels>& streams,
                                                     const std::map<StringId, Calls>& groups) {
  std::map<LaneId, std::vector<StringId>> groups_of;
  std::map<StringId, std::vector<LaneId>> streams_of;
  for (const auto& [stream, kernels] : streams) {
    for (const auto& [group, calls] : groups) {
      if (!Fit(kernels, calls)) continue;
      groups_of[stream].push_back(group);
      streams_of[group].push_back(stream);
    }
  }
  const auto is_only_of = [](const auto& fitting, const auto& one) {
    return std::ranges::count_if(fitting, [&](const auto& entry) {
             return entry.second.size() == 1 && entry.second.front() == one;
           }) == 1;
  };
  for (const auto& [stream, fitting] : groups_of) {
    if (fitting.size() == 1 && is_only_of(groups_of, fitting.front())) {
      return std::pair(stream, fitting.front());
    }
  }
  for (const auto& [group, fitting] : streams_of) {
    if (fitting.size() == 1 && is_only_of(streams_of, fitting.front())) {
      return std::pair(fitting.front(), group);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<OrderedPair> PairByOrder(std::vector<StrayKernel> kernels,
                                     std::vector<StrayCall> calls) {
  const auto by_time = [](const auto& row) { return std::pair(row.start, row.node); };
  std::ranges::sort(kernels, {}, by_time);
  std::ranges::sort(calls, {}, by_time);
  std::map<LaneId, Kernels> streams;
  std::map<StringId, Calls> groups;
  for (const StrayKernel& kernel : kernels) streams[kernel.stream].push_back(kernel);
  for (const StrayCall& call : calls) groups[call.group].push_back(call);

  // Jobs have fewer groups and streams per rank than this, so larger numbers are not compared.
  constexpr size_t kMostTried = 4096;
  std::vector<OrderedPair> pairs;
  while (streams.size() * groups.size() <= kMostTried) {
    const auto match = OnlyMatch(streams, groups);
    if (!match) break;
    Pair(streams.at(match->first), groups.at(match->second), pairs);
    streams.erase(match->first);
    groups.erase(match->second);
  }
  if (streams.size() == 1 || groups.size() == 1) {
    const Kernels rest = AllOf(streams);
    const Calls of_all = AllOf(groups);
    if (!rest.empty() && Fit(rest, of_all)) Pair(rest, of_all, pairs);
  }
  return pairs;
}

}  // namespace etude
