#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude {

// Calls `work(i, context)`, which returns a Result<T>, for each i below `count` on up to `threads`
// threads at once (0: as many as there are cores). Results come in the order of i, and so do the
// warnings. After a first error no new work is begun; that error is the result.
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
      try {
        results[i] = work(i, own);
      } catch (const std::exception& error) {
        results[i] = MakeError(ErrorCode::kInternal, error.what());
      }
      if (!*results[i]) failed = true;
    }
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : cores;
  std::vector<std::thread> pool;
  try {
    for (size_t i = 1; i < std::min(wanted, count); ++i) pool.emplace_back(loop);
  } catch (const std::system_error&) {
    // The system gives no more threads: those there are do all.
  }
  loop();
  for (std::thread& thread : pool) thread.join();
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
