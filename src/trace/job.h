#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// The traces of all ranks of a job; ranks that did the same share one trace. Const methods may be
// called from several threads.
class Job {
 public:
  struct Rank {
    int64_t rank = 0;
    size_t trace = 0;  // index of its trace
    TraceInfo info;    // its own: pid and clocks differ where the rest is shared
  };

  // kBadInput if the rank is there already.
  Status Add(int64_t rank, Trace trace);

  // By rank.
  std::span<const Rank> ranks() const { return ranks_; }
  size_t trace_count() const { return traces_.size(); }
  const Trace& trace(size_t index) const { return traces_[index]; }
  const Trace& TraceOf(const Rank& rank) const { return traces_[rank.trace]; }
  // The rank with this number, or nullptr.
  const Rank* Find(int64_t rank) const;

  // Bytes of all traces together.
  size_t memory_bytes() const;

 private:
  size_t Store(Trace trace);

  std::vector<Rank> ranks_;
  std::deque<Trace> traces_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;
};

}  // namespace etude
