#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Size of a communication.
struct CommSize {
  NodeKind kind = NodeKind::kCollective;  // or kSend, kRecv
  CollectiveType type = CollectiveType::kUnknown;
  Bytes bytes;        // input of one rank
  int64_t ranks = 2;  // in the group
};

// Returns the bytes sent by the busiest rank in a ring algorithm, with b the input of one rank and
// n the ranks: all-reduce 2 b (n-1)/n, all-gather b (n-1), reduce-scatter and all-to-all b (n-1)/n,
// gather b (n-1), scatter b (n-1)/n, all others b (Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005; the bus bandwidth of nccl-tests).
double WireBytes(const CommSize& size);

// Time of a communication without late ranks: latency + bytes on the wire / bandwidth (Hockney's
// model).
struct CommModel {
  Nanos latency;
  std::optional<double> bytes_per_second;  // nullopt: no limit

  Nanos TimeOf(const CommSize& size) const;
  // Returns the model of communications that take `factor` times as long.
  CommModel Slower(double factor) const;
};

// Measured time of a communication.
struct CommTime {
  CommSize size;
  Nanos time;
};

// Model of measured communications, with its accuracy.
struct CommFit {
  CommModel model;
  size_t communications = 0;
  size_t sizes = 0;          // number of distinct sizes
  double typical_error = 0;  // median of |model - time| / time over sizes
};

// Fits the quickest communication of each size by least squares of relative errors; slower ones
// waited for a late rank. With one size on the wire, latency is 0 and bandwidth accounts for all
// time. nullopt without a communication of known time. O(n log n).
std::optional<CommFit> FitCommModel(std::span<const CommTime> times);

// Returns the communications of all steps of the trace with known size and time: device work, and
// for Gloo the time from the call to the end of its label.
std::vector<CommTime> CommTimes(const Trace& trace);

}  // namespace etude
