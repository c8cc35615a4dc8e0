#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/job/step_job.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_works.h"

namespace etude {

// How a step of a network is spread over replicas.
struct NetworkPlan {
  int64_t data = 1;    // replicas
  int64_t images = 1;  // of a micro-batch of a replica
  // Training: whose gradients are added up. Inference: one after the other.
  int64_t micro_batches = 1;
  int64_t zero_stage = 0;
  // Gradients are reduced as soon as there are so many bytes of them.
  Bytes bucket{int64_t{25} << 20};
  OptimizerKind optimizer = OptimizerKind::kSgd;
  NetworkPhase phase = NetworkPhase::kTraining;
  // Of sampling, each with the network's forward pass: inference of one that denoises.
  int64_t steps = 1;
};

// kBadInput, with what was expected, unless the network can run so.
Status CheckNetworkPlan(const Network& network, const NetworkPlan& plan);

// What each rank holds all the time: of inference the weights.
StepStates StatesOfNetwork(const Network& network, const NetworkPlan& plan);

// A step of training, or forward passes. All ranks have one program; the one group is of all.
// kBadInput as CheckNetworkPlan.
Result<StepJob> MakeNetworkJob(const Network& network, const NetworkPlan& plan);

}  // namespace etude
