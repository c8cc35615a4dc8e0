#include "src/cli/torch/step_gate.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>

namespace etude {

struct StepGate::Shared {
  std::atomic<uint64_t> waiting = 0;  // calls of all processes but the lead
  std::atomic<uint64_t> opened = 0;
  std::atomic<bool> choice = false;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

void StepGate::Unmap::operator()(Shared* shared) const { munmap(shared, sizeof(Shared)); }

Result<StepGate> StepGate::Make(size_t processes) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Unavailable(std::string("shared memory: ") + std::strerror(errno));
  }
  return StepGate(new (memory) Shared, processes);
}

bool StepGate::Pass(bool choice) {
  const auto wait_for = [](const std::atomic<uint64_t>& count, uint64_t wanted) {
    while (count < wanted) std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
  ++passed_;
  if (is_lead_) {
    wait_for(shared_->waiting, passed_ * (processes_ - 1));
    shared_->choice = choice;
    shared_->opened = passed_;
  } else {
    ++shared_->waiting;
    wait_for(shared_->opened, passed_);
  }
  return shared_->choice;
}

}  // namespace etude
