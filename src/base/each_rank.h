#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/container/guarded.h"
#include "src/base/machine/threads.h"
#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude {

// Calls `work(i, context)`, which returns a Result<T>, for each i below `count` on up to `threads`
// threads (0: one per core). Results and warnings are in the order of i. After the first error no
// new work starts, and that error is returned.
template <typename T, typename Work>
Result<std::vector<T>> ForEachRank(size_t count, int64_t threads, const RunContext& context,
                                   Work work) {
  std::vector<std::optional<Result<T>>> results(count);
  std::vector<std::vector<std::string>> warnings(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto loop = [&] {
    while (!failed) {
      const size_t i = next++;
      if (i >= count) return;
      RunContext own = context;
      own.progress = nullptr;
      own.warn = [&, i](std::string_view text) { warnings[i].emplace_back(text); };
      results[i] = Guarded([&]() -> Result<T> { return work(i, own); });
      if (!*results[i]) failed = true;
    }
  };
  RunOnThreads(threads, count, loop);
  std::vector<T> done;
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& text : warnings[i]) context.Warn(text);
    if (!results[i]) continue;
    if (!*results[i]) return tl::unexpected<Error>(results[i]->error());
    done.push_back(std::move(**results[i]));
  }
  return done;
}

}  // namespace etude
