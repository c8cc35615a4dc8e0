#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/boltzmann/chains.h"
#include "src/suite/boltzmann/planted_modes.h"

namespace etude::suite {

struct MachineOptions {
  ChainOptions chains;
  size_t data = 2000;     // states drawn from the distribution
  int64_t updates = 150;  // at least 1
  double rate = 0.05;     // falls linearly to a tenth of it
  uint64_t seed = 1;
};

// Autocorrelation of the overlap with a pattern, over samples of the same chains that follow each
// other with the model fixed.
struct Autocorrelation {
  double time = 1;        // integrated, in samples: 1 if they are independent
  bool is_least = false;  // too few samples: the time is at least this
};

// A training run of a fully visible Boltzmann machine by gradient ascent on the likelihood.
struct MachineRun {
  std::vector<double> divergence;      // KL(distribution ‖ model) in nats, after each update
  std::vector<double> gradient_error;  // 1 − cosine to the exact gradient, at each update
  int64_t sweeps = 0;                  // over all chains and replicas
  Autocorrelation autocorrelation;     // of the chains, with the model at the end
};

// Trains a machine on a sample of `target`. kInterrupted if `context` stops it.
Result<MachineRun> TrainMachine(const PlantedModes& target, const MachineOptions& options,
                                const RunContext& context);

// Returns the integrated autocorrelation time 1 + 2 Σ ρ(t) of `series`, by chain and sample, with
// the mean and variance given. The sum ends at the first window of five times itself (Sokal).
Autocorrelation IntegratedTime(const std::vector<std::vector<double>>& series, double mean,
                               double variance);

}  // namespace etude::suite
