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

// What a microbenchmark does, again and again.
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
  kPairs,  // ranks 0 and 1, 2 and 3 … send to and fro
  kCompute,
  kMemLoad,
  kMemStore,
  kOverlap,  // computes while it all-reduces what it computed before
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
  Bytes size{1 << 20};      // that a rank puts in, sends or moves each time
  int64_t count = 1;        // repetitions, one after the other
  Nanos duration{100'000};  // of each computation; whole microseconds
  int64_t group_size = 0;   // collectives in groups of so many neighbours; 0: all ranks
  // Broadcast, reduce, gather, scatter and barrier as one collective node each, which ASTRA-sim
  // refuses; otherwise as sends and receives with rank 0 of the group, and as a small all-reduce.
  // Collectives may then be of one rank and of no bytes.
  bool native = false;
};

// kUsage if the options do not go together.
Status CheckMicrobench(const MicrobenchOptions& options);

// The Chakra trace of one rank. The options have passed CheckMicrobench.
Result<Trace> MakeMicrobench(const MicrobenchOptions& options, int64_t rank);

// The groups by number, as ASTRA-sim's file of groups has them; empty if all ranks are one.
std::map<int64_t, std::vector<int64_t>> MicrobenchGroups(const MicrobenchOptions& options);

}  // namespace etude
