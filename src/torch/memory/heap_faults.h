#pragma once

#include <cstdint>
#include <optional>

namespace etude {

// Matches the page faults of a replayed step to those of the program's steps.
//
// The number of new pages per step depends on the layout of the program's heap: a small block at
// its end decides whether memory is returned to the system or kept. Traces do not record the
// layout, but the number of page faults is recorded. If the replay's heap has the same number, it
// is left unchanged. Otherwise it keeps all memory from then on, and returns as many pages of the
// tensors freed by a step as needed to match the recorded faults.
class HeapFaults {
 public:
  // Sets the page faults per step of the program; nullopt: the heap is left unchanged.
  void Want(std::optional<int64_t> wanted);

  void BeforeStep() const;
  void AfterStep(int64_t faults);

  bool keeps_freed() const { return keeps_; }
  int64_t given_back() const { return given_back_; }  // maximum bytes per step

 private:
  std::optional<int64_t> wanted_;
  bool settling_ = false;  // the next step is not representative
  bool keeps_ = false;
  int64_t given_back_ = 0;
};

}  // namespace etude
