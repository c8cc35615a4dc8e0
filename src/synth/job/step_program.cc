#include "src/synth/job/step_program.h"

#include <algorithm>
#include <utility>

namespace etude {

size_t StepProgram::Push(StepWork work) {
  work.part = part_;
  works_.push_back(std::move(work));
  return works_.size() - 1;
}

void StepProgram::ComeAfter(StepWork& work, std::optional<size_t> other) {
  if (!other || std::ranges::find(work.data, *other) != work.data.end()) return;
  if (std::ranges::find(work.control, *other) == work.control.end()) {
    work.control.push_back(*other);
  }
}

size_t StepProgram::Compute(StepWork work) {
  ComeAfter(work, last_compute_);
  last_compute_ = Push(std::move(work));
  return *last_compute_;
}

size_t StepProgram::Collective(std::string name, In data, CollectiveType type, size_t group,
                               Bytes bytes, std::optional<size_t> after) {
  StepWork work{.name = std::move(name),
                .data = std::move(data),
                .collective = type,
                .group = group,
                .bytes = bytes};
  ComeAfter(work, after);
  ComeAfter(work, last_of_[group]);
  last_of_[group] = Push(std::move(work));
  return *last_of_[group];
}

size_t StepProgram::RingMessage(std::string name, In after, size_t axis, bool sends, Bytes bytes) {
  StepWork message{.name = std::move(name),
                   .partner = sends ? 1 : -1,
                   .axis = axis,
                   .sends = sends,
                   .tag = sends ? ring_sends_++ : ring_receives_++,
                   .bytes = bytes};
  // A received message only comes after `after`; its data are independent.
  (sends ? message.data : message.control) = std::move(after);
  return Push(std::move(message));
}

}  // namespace etude
