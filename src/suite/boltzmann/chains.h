#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/boltzmann/spin_model.h"

namespace etude::suite {

// The states that Gibbs chains begin with, at each update.
enum class ChainSeeds : uint8_t {
  kExact,     // no chains: exact means, by enumeration
  kRandom,    // uniform
  kData,      // the data: contrastive divergence (CD)
  kKept,      // the ends of the last update's chains: persistent CD
  kAnnealed,  // simulated annealing, anew each time. Stands in for a quantum annealer
  kTempered,  // parallel tempering, whose replicas are kept
};
std::string_view Name(ChainSeeds seeds);
// Returns whether the chains of successive updates depend on each other; else each sample is new.
constexpr bool KeepStates(ChainSeeds seeds) {
  return seeds == ChainSeeds::kKept || seeds == ChainSeeds::kTempered;
}
std::optional<ChainSeeds> ChainSeedsOf(std::string_view name);

struct ChainOptions {
  ChainSeeds seeds = ChainSeeds::kRandom;
  size_t chains = 300;
  int64_t k = 1;                  // Gibbs sweeps after the seed
  int64_t annealing_sweeps = 50;  // inverse temperature from 1/sweeps to 1
  int64_t tempering_sweeps = 10;  // of each replica, before each update
  int64_t replicas = 8;           // inverse temperatures 1/replicas to 1
};

// Gibbs sampling of a model. The local field of a spin is a sum of tables by byte of the state.
class GibbsSampler {
 public:
  explicit GibbsSampler(const SpinModel& model);

  // Updates every spin of `state` once at the inverse temperature `beta`.
  void Sweep(double beta, SpinState& state, RandomStream& random) const;

 private:
  static constexpr size_t kBytes = SpinModel::kMaxSpins / 8;
  using Tables = std::array<std::array<double, 256>, kBytes>;
  std::vector<Tables> tables_;  // by spin
};

// The chains of one training run. Not thread-safe.
class Chains {
 public:
  Chains(const ChainOptions& options, size_t spins, uint64_t seed);

  // Returns a sample for the current model: one state per chain. `data` are the states that
  // kData begins with.
  std::span<const SpinState> Sample(const SpinModel& model, std::span<const SpinState> data);

  size_t count() const { return states_.size(); }
  // Sets the states that kept chains go on from, one per chain.
  void Restart(std::vector<SpinState> states) { states_ = std::move(states); }

  // Returns the sweeps so far, over all chains and replicas.
  int64_t sweeps() const { return sweeps_; }

 private:
  SpinState RandomState();
  void Seed(const SpinModel& model, const GibbsSampler& sampler, std::span<const SpinState> data);
  void Temper(const SpinModel& model, const GibbsSampler& sampler);

  ChainOptions options_;
  size_t spins_;
  RandomStream random_;
  std::vector<SpinState> states_;
  std::vector<SpinState> replicas_;  // chain by chain, the hottest first
  int64_t sweeps_ = 0;
};

}  // namespace etude::suite
