#include "src/jobs/generate/plan_facts_of.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace etude {
namespace {

// Operations in matrix products of all ranks together, and their type (nullopt if there are
// several).
struct MatrixWork {
  double flops = 0;
  std::optional<DType> type;
};

MatrixWork MatrixWorkOf(const StepJob& job) {
  MatrixWork sum;
  std::set<DType> types;
  const double ranks = static_cast<double>(job.ranks()) / static_cast<double>(job.places());
  for (int64_t place = 0; place < job.places(); ++place) {
    for (const StepWork& work : job.program(place)) {
      if (work.matrix_flops == 0) continue;
      sum.flops += ranks * static_cast<double>(work.matrix_flops);
      types.insert(work.type);
    }
  }
  if (types.size() == 1) sum.type = *types.begin();
  return sum;
}

PlanMemory LargestMemory(const StepJob& job) {
  PlanMemory most;
  for (int64_t place = 0; place < job.places(); ++place) {
    const StepStates states =
        job.states().empty() ? StepStates() : job.states()[static_cast<size_t>(place)];
    const std::vector<Bytes> memory = job.MemoryOf(place);
    const Bytes peak = memory.empty() ? states.total() : std::ranges::max(memory);
    if (peak < most.peak) continue;
    if (peak == most.peak && place > 0) continue;
    most = {.peak = peak,
            .weights = states.weights,
            .gradients = states.gradients,
            .optimizer = states.optimizer,
            .cache = states.cache};
  }
  return most;
}

}  // namespace

PlanFacts PlanFactsOf(const GeneratedJob& made, const DeviceModel* device) {
  const MatrixWork work = MatrixWorkOf(made.job);
  PlanFacts facts{.ranks = made.job.ranks(),
                  .item = made.step.item,
                  .items = made.step.items,
                  .flops = made.step.flops.value_or(work.flops),
                  .bubble = made.step.bubble,
                  .memory = LargestMemory(made.job),
                  .device = {},
                  .peak = std::nullopt,
                  .capacity = std::nullopt};
  if (device == nullptr) return facts;
  facts.device = device->name;
  if (work.type) facts.peak = device->NominalMatrixPeak(*work.type);
  if (device->capacity.count != 0) facts.capacity = device->capacity;
  return facts;
}

}  // namespace etude
