#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/synth/transformer_layer.h"
#include "src/synth/transformer_program.h"

namespace etude {

// The program of a stage of a transformer, work by work, in the order in which it is added:
// computations come one after the other, and so do the collectives of a group. What a work waits
// for is a list of indices.
class ProgramWorks {
 public:
  using In = std::vector<size_t>;

  // The next step of the stage begins: a forward or backward pass of a micro-batch.
  void BeginStep() { step_ends_ = {step_ends_[1], last_compute_}; }

  size_t Compute(std::string name, In data, int64_t flops, Bytes memory);
  // Comes after `after`, too.
  size_t Collective(std::string name, In data, CollectiveType type, ParallelGroup group,
                    Bytes bytes, std::optional<size_t> after = std::nullopt);
  // What is received may come once the step before has begun.
  size_t Message(StepWork message);

  // Work of a layer. `ids`: of earlier work of the same pass; `in`: what comes into it.
  size_t AddLayerWork(std::string name, const LayerWork& work,
                      const std::vector<std::optional<size_t>>& ids, const In& in);

  std::optional<size_t> last_compute() const { return last_compute_; }
  std::vector<StepWork> Take() { return std::move(works_); }

 private:
  size_t Push(StepWork work);

  std::vector<StepWork> works_;
  std::optional<size_t> last_compute_;
  std::array<std::optional<size_t>, kParallelGroupCount> last_of_;  // by group
  std::array<std::optional<size_t>, 2> step_ends_;  // of the last but one and the last
};

// Layers of a place of the network: of `places` that they are dealt out to evenly.
struct LayerRange {
  int64_t first = 0;
  int64_t count = 0;
};
LayerRange LayersOfPlace(int64_t layers, int64_t places, int64_t place);

}  // namespace etude
