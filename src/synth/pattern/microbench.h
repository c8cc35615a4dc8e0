#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Repeated operation of a microbenchmark.
enum class Pattern : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kRing,   // each rank sends to the next one
  kPairs,  // ranks 0 and 1, 2 and 3 … send back and forth
  kCompute,
  kMemLoad,
  kMemStore,
  kOverlap,  // computes while it all-reduces the previous result
};
struct PatternInfo {
  Pattern pattern;
  std::string_view name;
  std::string_view help;
};
std::span<const PatternInfo> Patterns();

struct MicrobenchOptions {
  Pattern pattern = Pattern::kAllReduce;
  int64_t ranks = 2;
  Bytes size{1 << 20};      // input, message or transfer size of a rank per repetition
  int64_t count = 1;        // repetitions, one after the other
  Nanos duration{100'000};  // of each computation; whole microseconds
  int64_t group_size = 0;   // collectives in groups of as many neighbours; 0: all ranks
  // True to make broadcast, reduce, gather, scatter and barrier one collective node each, which
  // ASTRA-sim refuses; otherwise they are sends and receives with rank 0 of the group, and a small
  // all-reduce. If true, collectives may have one rank and no bytes.
  bool native = false;
};

// Returns kUsage for incompatible options.
Status CheckMicrobench(const MicrobenchOptions& options);

// Makes the Chakra trace of one rank. The options must have passed CheckMicrobench.
Result<Trace> MakeMicrobench(const MicrobenchOptions& options, int64_t rank);

// Returns the groups by number, as in ASTRA-sim's file of groups; empty if all ranks are one group.
std::map<int64_t, std::vector<int64_t>> MicrobenchGroups(const MicrobenchOptions& options);

}  // namespace etude
