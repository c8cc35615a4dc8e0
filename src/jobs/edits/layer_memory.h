#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/jobs/edited_memory.h"
#include "src/synth/job/pipeline_schedule.h"
#include "src/trace/trace.h"
#include "src/transform/layers/layer_stack.h"
#include "src/transform/layers/stage_split.h"

namespace etude {

// Returns the peak memory of the tensors of a recorded step with `layers` layers instead of those
// of `stack`, which was found in it. Memory of operators on lists grows by the share of the layers.
// nullopt: unknown (FindRepeatedMemory), or the trace has no tensors.
std::optional<TensorPeaks> MemoryOfLayers(const Trace& trace, const LayerStack& stack,
                                          size_t layers);

// Returns the peak memory of the tensors of each stage of a pipeline, into which `split` divides a
// recorded step. nullopt: unknown, as above.
std::optional<std::vector<TensorPeaks>> MemoryOfStages(const Trace& trace, const StageSplit& split,
                                                       const PipelinePlan& plan);

}  // namespace etude
