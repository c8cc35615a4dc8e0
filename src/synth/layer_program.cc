#include "src/synth/layer_program.h"

#include <algorithm>
#include <utility>

#include "src/synth/transformer/transformer_program.h"

namespace etude {
namespace {

ParallelGroup GroupOf(LayerAxis axis) {
  switch (axis) {
    case LayerAxis::kTensor: return ParallelGroup::kTensor;
    case LayerAxis::kContext: return ParallelGroup::kContext;
    case LayerAxis::kExpert: return ParallelGroup::kExpert;
  }
  return ParallelGroup::kTensor;
}

ParallelAxis MeshAxisOf(LayerAxis axis) {
  switch (axis) {
    case LayerAxis::kTensor: return ParallelAxis::kTensor;
    case LayerAxis::kContext: return ParallelAxis::kContext;
    case LayerAxis::kExpert: return ParallelAxis::kExpert;
  }
  return ParallelAxis::kTensor;
}

}  // namespace

size_t AddLayerWork(StepProgram& program, std::string name, const LayerWork& work, DType type,
                    const std::vector<std::optional<size_t>>& ids, const StepProgram::In& in) {
  StepProgram::In data;
  for (const size_t input : work.inputs) data.push_back(*ids[input]);
  if (work.inputs.empty()) data = in;
  if (!work.communicates()) {
    return program.Compute({.name = std::move(name),
                            .data = std::move(data),
                            .flops = work.flops,
                            .matrix_flops = work.matrix_flops,
                            .type = type,
                            .product = work.product,
                            .memory = work.read + work.written});
  }
  if (work.message != LayerMessage::kNone) {
    return program.RingMessage(std::move(name), std::move(data),
                               static_cast<size_t>(MeshAxisOf(work.axis)),
                               work.message == LayerMessage::kToNext, work.bytes);
  }
  return program.Collective(std::move(name), std::move(data), work.collective,
                            static_cast<size_t>(GroupOf(work.axis)), work.bytes);
}

LayerRange LayersOfPlace(int64_t layers, int64_t places, int64_t place) {
  const int64_t rest = layers % places;
  return {.first = layers / places * place + std::min(place, rest),
          .count = layers / places + (place < rest ? 1 : 0)};
}

}  // namespace etude
