#include "src/synth/program_works.h"

#include <algorithm>

namespace etude {
namespace {

void ComeAfter(StepWork& work, std::optional<size_t> other) {
  if (!other || std::ranges::find(work.data, *other) != work.data.end()) return;
  if (std::ranges::find(work.control, *other) == work.control.end()) work.control.push_back(*other);
}

ParallelGroup GroupOf(LayerAxis axis) {
  switch (axis) {
    case LayerAxis::kTensor: return ParallelGroup::kTensor;
    case LayerAxis::kContext: return ParallelGroup::kContext;
    case LayerAxis::kExpert: return ParallelGroup::kExpert;
  }
  return ParallelGroup::kTensor;
}

}  // namespace

size_t ProgramWorks::Push(StepWork work) {
  works_.push_back(std::move(work));
  return works_.size() - 1;
}

size_t ProgramWorks::Compute(std::string name, In data, int64_t flops, Bytes memory) {
  StepWork work{.name = std::move(name), .data = std::move(data), .flops = flops, .memory = memory};
  ComeAfter(work, last_compute_);
  last_compute_ = Push(std::move(work));
  return *last_compute_;
}

size_t ProgramWorks::Collective(std::string name, In data, CollectiveType type, ParallelGroup group,
                                Bytes bytes, std::optional<size_t> after) {
  StepWork work{.name = std::move(name),
                .data = std::move(data),
                .collective = type,
                .group = static_cast<size_t>(group),
                .bytes = bytes};
  std::optional<size_t>& last = last_of_[static_cast<size_t>(group)];
  ComeAfter(work, after);
  ComeAfter(work, last);
  last = Push(std::move(work));
  return *last;
}

size_t ProgramWorks::Message(StepWork message) {
  if (!message.sends) ComeAfter(message, step_ends_[0]);
  return Push(std::move(message));
}

size_t ProgramWorks::AddLayerWork(std::string name, const LayerWork& work,
                                  const std::vector<std::optional<size_t>>& ids, const In& in) {
  In data;
  for (const size_t input : work.inputs) data.push_back(*ids[input]);
  if (work.inputs.empty()) data = in;
  if (!work.communicates()) {
    return Compute(std::move(name), std::move(data), work.flops, work.read + work.written);
  }
  return Collective(std::move(name), std::move(data), work.collective, GroupOf(work.axis),
                    work.bytes);
}

LayerRange LayersOfPlace(int64_t layers, int64_t places, int64_t place) {
  const int64_t rest = layers % places;
  return {.first = layers / places * place + std::min(place, rest),
          .count = layers / places + (place < rest ? 1 : 0)};
}

}  // namespace etude
