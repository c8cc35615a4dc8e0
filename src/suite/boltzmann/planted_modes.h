#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/boltzmann/spin_model.h"

namespace etude::suite {

// A distribution to be learned: four modes, at two orthogonal patterns of spins and their
// opposites, with barriers of adjustable height between them. The couplings are Hopfield's, with
// weak random fields.
struct PlantedModes {
  SpinModel model = SpinModel(0);
  SpinState pattern = 0;  // of the heavier pair of modes
  double barrier = 0;     // in kT: BarrierAlong(pattern)
  SpinDistribution exact;
};

// Makes the distribution whose exact barrier along the heavier pattern is `barrier`, at least 0, or
// the highest one below it that the patterns allow.
PlantedModes PlantModes(size_t spins, double barrier, uint64_t seed);

// Returns the exact height of a barrier in kT: of F(m) = −ln P(overlap with `pattern` = m), from
// the higher of the two minima on either side of m = 0 to the top between them.
double BarrierAlong(SpinState pattern, const SpinDistribution& exact, size_t spins);

// Draws states of an exact distribution.
std::vector<SpinState> Draw(const SpinDistribution& exact, size_t count, RandomStream& random);

}  // namespace etude::suite
