#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/synth/job/step_program.h"
#include "src/synth/transformer/transformer_layer.h"

namespace etude {

// Adds work of a layer to a stage's program, whose groups are ParallelGroups. `ids`: earlier work
// of the same pass; `in`: its input; `type`: type of its computation.
size_t AddLayerWork(StepProgram& program, std::string name, const LayerWork& work, DType type,
                    const std::vector<std::optional<size_t>>& ids, const StepProgram::In& in);

// Range of layers at one of `places` places of the network.
struct LayerRange {
  int64_t first = 0;
  int64_t count = 0;
};
LayerRange LayersOfPlace(int64_t layers, int64_t places, int64_t place);

}  // namespace etude
