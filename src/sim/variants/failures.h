#pragma once

#include <cstdint>
#include <optional>

namespace etude {

// Failures of ranks, and checkpoints of a job: docs/models/variation.md. Times in s.
struct FailureModel {
  double mtbf = 0;                 // mean time between failures of one rank, exponential
  double checkpoint = 0;           // to write one, while the job waits
  double restart = 0;              // from a failure until the job computes again
  std::optional<double> interval;  // of computation between checkpoints; nullopt: the best one
};

// Shares of the time of a long job; they add up to 1.
struct Goodput {
  double mtbf = 0;      // of the job, s
  double interval = 0;  // s
  double useful = 0;    // computation that a checkpoint keeps
  double checkpoints = 0;
  double lost = 0;  // repeated work and restarts
};

// Daly 2006, doi 10.1016/j.future.2004.11.016: the expected time of useful work with exponential
// failures, also during checkpoints and restarts.
Goodput GoodputOf(const FailureModel& model, int64_t ranks);
// Returns the interval that maximizes the useful share, to a relative 1e-6.
double BestInterval(const FailureModel& model, int64_t ranks);

// Returns the useful share in a simulation with this many random failures.
double SimulatedGoodput(const FailureModel& model, int64_t ranks, int64_t failures, uint64_t seed);

}  // namespace etude
