#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/text/table.h"
#include "src/suite/boltzmann/machine_training.h"

namespace etude::suite {

// A comparison of the seeds of Gibbs chains, over barriers and numbers of sweeps.
struct StudyOptions {
  int64_t spins = 16;
  std::vector<double> barriers = {2, 8};  // kT
  std::vector<ChainSeeds> seeds;
  std::vector<int64_t> ks = {0, 1, 10, 50};  // Gibbs sweeps after the seed
  int64_t runs = 3;                          // training runs of each, from seed 1
  MachineOptions machine;  // its chains' seeds, k and its seed are set by the study
  int64_t threads = 0;     // 0: one per core
};

// The runs of one barrier, one kind of seed and one k.
struct StudyRow {
  size_t target = 0;   // number of the barrier
  double barrier = 0;  // exact, kT
  ChainSeeds seeds = ChainSeeds::kExact;
  int64_t k = 0;
  std::vector<double> divergences;      // KL at the end, by run
  std::vector<double> gradient_errors;  // mean of the second half of the updates, by run
  double sweeps_per_sample = 0;
  Autocorrelation autocorrelation;  // median time of the runs
};

// Returns the kinds of seeds with the numbers of sweeps that a study trains with: CD, PCD and
// random seeds learn with at least one sweep only, and exact means have no chains.
std::vector<std::pair<ChainSeeds, int64_t>> StudySettings(const StudyOptions& options);

// Trains all machines. The distribution of a barrier is the same for all seeds.
Result<std::vector<StudyRow>> RunStudy(const StudyOptions& options, const RunContext& context);

// Returns one table per barrier.
std::vector<Table> StudyTables(const std::vector<StudyRow>& rows);

}  // namespace etude::suite
