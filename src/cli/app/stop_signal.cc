#include "src/cli/app/stop_signal.h"

#include <sys/mman.h>

#include <new>

namespace etude {
namespace {

// In memory shared with forked processes, because a signal may go to one process only. Global,
// because signal handlers cannot access anything else.
std::atomic<bool>* stop_signal_came = nullptr;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

Result<std::unique_ptr<StopSignal>> StopSignal::Make() {
  if (stop_signal_came == nullptr) {
    void* memory = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Unavailable("cannot allocate shared memory");
    stop_signal_came = new (memory) std::atomic<bool>(false);
  }
  return std::unique_ptr<StopSignal>(new StopSignal);
}

StopSignal::StopSignal() {
  *stop_signal_came = false;
  struct sigaction note {};
  note.sa_handler = Note;
  note.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &note, &interrupt_before_);
  sigaction(SIGTERM, &note, &end_before_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &end_before_, nullptr);
}

const std::atomic<bool>* StopSignal::flag() const { return stop_signal_came; }

void StopSignal::Note(int /*signal*/) { *stop_signal_came = true; }

}  // namespace etude
