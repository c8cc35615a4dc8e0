#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/enums.h"

namespace etude {

// A copy of a trace of one rank to which all-reduces among several ranks are added, on a thread or
// stream of their own. Refers to the trace.
class AddedReductions {
 public:
  AddedReductions(const Trace& trace, const Limits& limits);

  // Copies the trace, with the number of ranks of the job and a group of `ranks` ranks. kBadInput
  // if there are no ids for `added` more nodes.
  Status Copy(std::string_view group, int64_t ranks, int64_t world_size, uint64_t added);

  // Adds an all-reduce without dependencies, which begins at `start` and takes no time.
  NodeId Add(Nanos start, DType dtype, Bytes bytes);
  uint64_t NextId() { return next_id_++; }
  TraceBuilder& builder() { return builder_; }

  // Returns whether the work is on the host.
  bool on_host() const { return launched_.empty(); }
  // Return the device work that was launched last before `time`, and first at or after it; kNone
  // without any.
  NodeId LaunchedBefore(Nanos time) const;
  NodeId LaunchedAfter(Nanos time) const;

 private:
  using Launched = std::pair<Nanos, NodeId>;  // launch time, device work

  const Trace& trace_;
  TraceBuilder builder_;
  std::vector<Launched> launched_;  // by time
  int32_t last_stream_ = 0;
  int64_t ranks_ = 0;  // of the group
  uint64_t next_id_ = 0;
  StringId group_;
  LaneId lane_;
};

}  // namespace etude
