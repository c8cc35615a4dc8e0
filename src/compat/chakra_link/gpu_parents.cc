#include "src/compat/chakra_link/gpu_parents.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <string>

#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra_link/stable_order.h"

namespace etude::compat {
namespace {

// An operation that may have launched another.
struct Candidate {
  PyNumber ts;
  uint32_t tid = 0;
  uint32_t external = 0;
  bool is_coalesced = false;
};

// The most recent operations, by thread and external id, and by thread.
class LatestOps {
 public:
  explicit LatestOps(size_t threads) : by_thread_(threads, kNoRow) {}

  void Add(const Candidate& candidate, uint32_t place) {
    by_both_.Set(Key(candidate.tid, candidate.external), place);
    by_thread_[candidate.tid] = place;
  }
  uint32_t Find(uint32_t tid, uint32_t external) const {
    const uint32_t found = by_both_.Find(Key(tid, external));
    return found != kNoRow ? found : by_thread_[tid];
  }

 private:
  static uint64_t Key(uint32_t tid, uint32_t external) { return (uint64_t{tid} << 32) | external; }

  FlatMap by_both_;
  std::vector<uint32_t> by_thread_;
};

// Adds Chakra's operations: one for the process and one per thread, all with tid 0 and without
// external id.
std::vector<Candidate> WithAnnotations(const DeviceTrace& trace, std::vector<Candidate> ops) {
  struct Bounds {
    PyNumber start;
    bool seen = false;
  };
  std::vector<Bounds> bounds(trace.tids.size());
  std::vector<uint32_t> threads;
  for (const uint32_t row : trace.order) {
    Bounds& of_thread = bounds[trace.events[row].tid];
    if (of_thread.seen) continue;
    of_thread = {.start = trace.events[row].ts, .seen = true};
    threads.push_back(trace.events[row].tid);
  }
  if (threads.empty()) return ops;
  std::list<Candidate> list(ops.begin(), ops.end());
  const auto annotation = [&](const PyNumber& ts) {
    return Candidate{.ts = ts, .tid = trace.tid_zero, .external = 0};
  };
  list.push_front(annotation(bounds[threads[0]].start));
  // First operation of each thread; only thread 0 may have an added one.
  std::vector<std::list<Candidate>::iterator> first(trace.tids.size(), list.end());
  for (auto at = list.begin(); at != list.end(); ++at) {
    if (first[at->tid] == list.end()) first[at->tid] = at;
  }
  for (const uint32_t thread : threads) {
    auto place = first[thread];
    if (thread == trace.tid_zero) {
      place = std::find_if(list.begin(), list.end(), [&](const Candidate& candidate) {
        return candidate.tid == thread && candidate.ts >= bounds[thread].start;
      });
    }
    list.insert(place, annotation(bounds[thread].start));
  }
  ops.assign(list.begin(), list.end());
  std::ranges::stable_sort(ops, {}, &Candidate::ts);
  return ops;
}

}  // namespace

Result<std::vector<uint32_t>> FindGpuParents(const DeviceTrace& trace,
                                             const std::vector<uint32_t>& cpu_ops,
                                             const std::vector<uint32_t>& gpu_ops,
                                             const std::string& name) {
  FlatMap launch_of(gpu_ops.size());
  bool uses_thread_zero = false;
  for (const uint32_t row : trace.order) {
    const DeviceEvent& event = trace.events[row];
    if (event.role != EventRole::kLaunch) continue;
    if (launch_of.Insert(static_cast<uint64_t>(event.correlation), row) != row) {
      return ChakraFails(name, fmt::format("two launches with correlation {}", event.correlation),
                         "ValueError");
    }
    uses_thread_zero |= event.tid == trace.tid_zero;
  }

  std::vector<Candidate> candidates;
  candidates.reserve(cpu_ops.size());
  bool has_coalesced = false;
  for (const uint32_t row : cpu_ops) {
    const DeviceEvent& op = trace.events[row];
    candidates.push_back({op.ts, op.tid, op.external, op.is_coalesced});
    has_coalesced |= op.is_coalesced;
  }
  if (uses_thread_zero) candidates = WithAnnotations(trace, std::move(candidates));

  // Device operations by launch, so that one pass over the candidates is enough.
  std::vector<uint32_t> launched;  // indices in gpu_ops
  std::vector<uint32_t> launches;  // their launches
  for (uint32_t place = 0; place < gpu_ops.size(); ++place) {
    const int64_t correlation = trace.events[gpu_ops[place]].correlation;
    const uint32_t launch = launch_of.Find(static_cast<uint64_t>(correlation));
    if (launch == kNoRow) continue;
    launched.push_back(place);
    launches.push_back(launch);
  }
  std::vector<uint32_t> time_rank(trace.events.size());
  for (uint32_t i = 0; i < trace.order.size(); ++i) time_rank[trace.order[i]] = i;
  std::vector<uint64_t> keys;
  keys.reserve(launches.size());
  for (const uint32_t launch : launches) keys.push_back(time_rank[launch]);

  std::vector<uint32_t> parents(gpu_ops.size(), kNoRow);
  LatestOps latest(trace.tids.size());
  LatestOps latest_not_coalesced(has_coalesced ? trace.tids.size() : 0);
  uint32_t next = 0;
  for (const uint32_t i : StableOrder(keys)) {
    const DeviceEvent& launch = trace.events[launches[i]];
    for (; next < candidates.size() && candidates[next].ts < launch.ts; ++next) {
      latest.Add(candidates[next], next);
      if (has_coalesced && !candidates[next].is_coalesced) {
        latest_not_coalesced.Add(candidates[next], next);
      }
    }
    const DeviceEvent& gpu_op = trace.events[gpu_ops[launched[i]]];
    const LatestOps& ops = has_coalesced && gpu_op.is_nccl ? latest_not_coalesced : latest;
    const uint32_t found = ops.Find(launch.tid, gpu_op.external);
    if (found != kNoRow) parents[launched[i]] = candidates[found].external;
  }
  return parents;
}

}  // namespace etude::compat
