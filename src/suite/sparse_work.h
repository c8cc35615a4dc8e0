#pragma once

#include <cstdint>
#include <map>

#include "src/trace/trace.h"

namespace etude::suite {

// Floating-point operations of matrix products, convolutions and attention in a forward pass.
struct SparseWork {
  double dense = 0;   // by the shapes
  double sparse = 0;  // in theory: those with a masked weight times the density of its layer
};

// Returns the work of the forward pass in the trace of a training step, whose backward pass runs
// below labels of autograd. `densities`: by the address of a weight's memory, or of its tensor if
// that has no memory of its own (sparse tensors).
SparseWork ForwardWork(const Trace& trace, const std::map<uint64_t, double>& densities);

// Returns the theoretical operations of `steps` training steps as a share of those of dense
// training (Evci et al., 1911.11134, appendix): a step takes three times the work of a forward
// pass; one that updates masks by all gradients (`updates` of RigL) takes a dense backward pass for
// the weights. 0 without work.
double TrainingShare(const SparseWork& forward, int64_t steps, int64_t updates);

}  // namespace etude::suite
