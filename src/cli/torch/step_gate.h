#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/result.h"

namespace etude {

// Lets processes that this one forks begin steps together. The lead decides whether a step comes
// next, and the others follow. One process runs as each of them; processes that end while others
// wait must end these, too (RunRanks does).
class StepGate {
 public:
  // Makes a gate for `processes` of at least 1. kUnavailable if the system has no shared memory.
  static Result<StepGate> Make(size_t processes);

  // Joins as the lead or as one of the others, after the fork.
  void Join(bool is_lead) { is_lead_ = is_lead; }
  bool is_lead() const { return is_lead_; }

  // Waits until all processes have called it, and returns the lead's choice in all of them. The
  // choices of the others are ignored.
  bool Pass(bool choice);

 private:
  struct Shared;
  struct Unmap {
    void operator()(Shared* shared) const;
  };

  StepGate(Shared* shared, size_t processes) : shared_(shared), processes_(processes) {}

  std::unique_ptr<Shared, Unmap> shared_;
  size_t processes_ = 1;
  bool is_lead_ = true;
  uint64_t passed_ = 0;
};

}  // namespace etude
