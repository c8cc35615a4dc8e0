#pragma once

#include <cstdint>
#include <optional>

namespace etude {

// Brings the page faults of a replayed step to those of the program's steps.
//
// How many pages a step gets anew depends on what the program's heap looks like: a small block at
// its end, of Python's or of anybody's, decides whether memory is given back to the system or kept.
// No trace tells that, but how many page faults the steps had is recorded. As long as the replay's
// heap has as many it is left alone. Else it keeps all memory from then on, and of the tensors that
// a step frees so many pages are given back that the faults meet those recorded.
class HeapFaults {
 public:
  // `wanted`: page faults of a step of the program; nullopt: the heap is left alone.
  void Want(std::optional<int64_t> wanted);

  void BeforeStep() const;
  void AfterStep(int64_t faults);

  bool keeps_freed() const { return keeps_; }
  int64_t given_back() const { return given_back_; }  // bytes in each step, at most

 private:
  std::optional<int64_t> wanted_;
  bool settling_ = false;  // the next step tells nothing
  bool keeps_ = false;
  int64_t given_back_ = 0;
};

}  // namespace etude
