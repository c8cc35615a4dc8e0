#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/job/step_job.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_works.h"

namespace etude {

// Distribution of a network's step over replicas.
struct NetworkPlan {
  int64_t data = 1;    // replicas
  int64_t images = 1;  // per micro-batch of a replica
  // Training: their gradients are accumulated. Inference: one after the other.
  int64_t micro_batches = 1;
  int64_t zero_stage = 0;
  // Size of gradients at which they are reduced.
  Bytes bucket{int64_t{25} << 20};
  OptimizerKind optimizer = OptimizerKind::kSgd;
  NetworkPhase phase = NetworkPhase::kTraining;
  // Number of sampling steps, each with a forward pass of the network: inference of a denoising
  // network.
  int64_t steps = 1;
};

// Returns kBadInput, with the expected values, unless the network can run so.
Status CheckNetworkPlan(const Network& network, const NetworkPlan& plan);

// Returns the memory that each rank holds permanently; for inference the weights.
StepStates StatesOfNetwork(const Network& network, const NetworkPlan& plan);

// Makes a training step, or forward passes. All ranks have one program; the only group contains all
// ranks. kBadInput as in CheckNetworkPlan.
Result<StepJob> MakeNetworkJob(const Network& network, const NetworkPlan& plan);

}  // namespace etude
