#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace etude {

// Runs `loop` on up to `threads` threads (0: one per core) including this one, and on no more than
// `most`, the number of work items. `loop` must not throw.
template <typename Loop>
void RunOnThreads(int64_t threads, size_t most, const Loop& loop) {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : cores;
  std::vector<std::thread> pool;
  try {
    for (size_t i = 1; i < std::min(wanted, most); ++i) pool.emplace_back(loop);
  } catch (const std::system_error&) {
    // The system refuses more threads: the existing ones do all the work.
  }
  loop();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace etude
