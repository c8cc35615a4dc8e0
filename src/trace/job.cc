#include "src/trace/job.h"

#include <algorithm>
#include <string>
#include <utility>

namespace etude {

Status Job::Add(int64_t rank, Trace trace) {
  const auto at = std::ranges::lower_bound(ranks_, rank, {}, &Rank::rank);
  if (at != ranks_.end() && at->rank == rank) {
    return BadInput("found rank " + std::to_string(rank) + " twice, expected each rank once");
  }
  TraceInfo info = trace.info();
  const size_t stored = Store(std::move(trace));
  ranks_.insert(at, Rank{.rank = rank, .trace = stored, .info = std::move(info)});
  return {};
}

size_t Job::Store(Trace trace) {
  const uint64_t hash = trace.ContentHash();
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (traces_[it->second].SameContent(trace)) return it->second;
  }
  traces_.push_back(std::move(trace));
  by_hash_.emplace(hash, traces_.size() - 1);
  return traces_.size() - 1;
}

const Job::Rank* Job::Find(int64_t rank) const {
  const auto at = std::ranges::lower_bound(ranks_, rank, {}, &Rank::rank);
  return at != ranks_.end() && at->rank == rank ? &*at : nullptr;
}

size_t Job::memory_bytes() const {
  size_t bytes = 0;
  for (const Trace& trace : traces_) bytes += trace.memory_bytes();
  return bytes;
}

}  // namespace etude
