#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/synth/job/step_job.h"

namespace etude {

// Builder of a rank's step: computations are sequential, and so are the collectives of a group.
// Adding work returns its index.
class StepProgram {
 public:
  using In = std::vector<size_t>;

  explicit StepProgram(size_t groups) : last_of_(groups) {}

  // Sets the part of the work added from here on.
  void Begin(ProgramPart part) { part_ = part; }

  size_t Push(StepWork work);
  size_t Compute(StepWork work);
  // Members of a group call its collectives in one order, so each comes after the previous one.
  size_t Collective(std::string name, In data, CollectiveType type, size_t group, Bytes bytes,
                    std::optional<size_t> after = std::nullopt);

  // Adds a message to the next rank along an axis of the mesh, wrapping around, or from the
  // previous one. All ranks send and receive in the same order.
  size_t RingMessage(std::string name, In after, size_t axis, bool sends, Bytes bytes);

  std::optional<size_t> last_compute() const { return last_compute_; }
  std::vector<StepWork>& works() { return works_; }

  static void ComeAfter(StepWork& work, std::optional<size_t> other);

 private:
  std::vector<StepWork> works_;
  std::optional<ProgramPart> part_;
  std::optional<size_t> last_compute_;
  std::vector<std::optional<size_t>> last_of_;  // by group
  int64_t ring_sends_ = 0;
  int64_t ring_receives_ = 0;
};

}  // namespace etude
