#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// What a communication moves.
struct CommSize {
  NodeKind kind = NodeKind::kCollective;  // or kSend, kRecv
  CollectiveType type = CollectiveType::kUnknown;
  Bytes bytes;        // what one rank puts in
  int64_t ranks = 2;  // of the group
};

// The bytes that the busiest rank sends by a ring algorithm, b being what one rank puts in and n
// the ranks: all-reduce 2 b (n-1)/n, all-gather b (n-1), reduce-scatter and all-to-all b (n-1)/n,
// gather b (n-1), scatter b (n-1)/n, all else b (Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005; the bus bandwidth of nccl-tests).
double WireBytes(const CommSize& size);

// The time of a communication that nobody is late for: latency + bytes on the wire / bandwidth
// (Hockney's model).
struct CommModel {
  Nanos latency;
  std::optional<double> bytes_per_second;  // nullopt: no limit

  Nanos TimeOf(const CommSize& size) const;
  // The same communications taking `factor` times as long.
  CommModel Slower(double factor) const;
};

// How long a communication was seen to take.
struct CommTime {
  CommSize size;
  Nanos time;
};

// A model of measured communications and how well it fits.
struct CommFit {
  CommModel model;
  size_t communications = 0;
  size_t sizes = 0;          // different ones
  double typical_error = 0;  // median of |model - time| / time over sizes
};

// Fits by least squares of relative errors to the quickest communication of each size, as the
// others waited for a rank that was late. With one size of bytes on the wire, all of its time is
// bandwidth's, and latency is 0. nullopt without a communication of known time. O(n log n).
std::optional<CommFit> FitCommModel(std::span<const CommTime> times);

// The communications of all steps of the trace whose size and time are known: of devices their
// work, of Gloo from the call to the end of its label.
std::vector<CommTime> CommTimes(const Trace& trace);

}  // namespace etude
