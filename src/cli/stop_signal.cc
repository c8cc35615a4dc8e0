#include "src/cli/stop_signal.h"

namespace etude {
namespace {

// Signal handlers reach nothing else.
std::atomic<bool> stop_signal_came = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void NoteStopSignal(int /*signal*/) { stop_signal_came = true; }

}  // namespace

StopSignal::StopSignal() {
  stop_signal_came = false;
  struct sigaction note {};
  note.sa_handler = NoteStopSignal;
  note.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &note, &interrupt_before_);
  sigaction(SIGTERM, &note, &end_before_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &end_before_, nullptr);
}

const std::atomic<bool>* StopSignal::flag() const { return &stop_signal_came; }

}  // namespace etude
