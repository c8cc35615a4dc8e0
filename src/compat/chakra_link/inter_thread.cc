#include "src/compat/chakra_link/inter_thread.h"

#include <algorithm>
#include <span>

namespace etude::compat {
namespace {

// An operation begins a group if it starts more than this after the previous operation's end.
constexpr int64_t kGapMicros = 1000;

}  // namespace

std::vector<int64_t> FindInterThreadDeps(const DeviceTrace& trace,
                                         const std::vector<uint32_t>& cpu_ops,
                                         const Groups& by_thread,
                                         const std::vector<uint32_t>& threads) {
  const auto event = [&](uint32_t place) -> const DeviceEvent& {
    return trace.events[cpu_ops[place]];
  };
  const auto start = [&](uint32_t place) -> const PyNumber& { return event(place).ts; };
  // Returns the rf id of the latest operation of other threads before `time`; the first one of
  // several.
  const auto latest_before = [&](uint32_t own_thread, const PyNumber& time) -> int64_t {
    PyNumber latest;
    int64_t rf_id = 0;
    for (const uint32_t thread : threads) {
      if (thread == own_thread) continue;
      const std::span<const uint32_t> ops = by_thread[thread];
      const auto after = std::ranges::lower_bound(ops, time, {}, start);
      if (after == ops.begin() || !(start(*(after - 1)) > latest)) continue;
      latest = start(*(after - 1));
      const auto first = std::ranges::lower_bound(ops, latest, {}, start);
      rf_id = event(*first).has_rf_id ? event(*first).rf_id : 0;
    }
    return rf_id;
  };

  std::vector<int64_t> deps(cpu_ops.size(), 0);
  const PyNumber gap = PyNumber::Int(kGapMicros);
  for (const uint32_t thread : threads) {
    int64_t dep = 0;
    const DeviceEvent* before = nullptr;
    for (const uint32_t place : by_thread[thread]) {
      const DeviceEvent& op = event(place);
      if (before == nullptr || op.ts - before->ts - before->dur > gap) {
        dep = latest_before(thread, op.ts);
      }
      deps[place] = dep;
      before = &op;
    }
  }
  return deps;
}

}  // namespace etude::compat
