// What Python calls through ctypes. Texts are UTF-8 and end with zero. A function that can fail
// returns null, or what went wrong as a text that is valid until the thread's next call.

#include <string>

#include "src/torch/recorder/recorder.h"

#define ETUDE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

const char* Outcome(bool done, const std::string& error) {
  thread_local std::string kept;
  if (done) return nullptr;
  kept = error.empty() ? "unknown error" : error;
  return kept.c_str();
}

}  // namespace

// The version of torch that this library was built for.
ETUDE_EXPORT const char* etude_recorder_torch_version() { return ETUDE_TORCH_VERSION; }

// Starts recording to `path`; `header` are members of a JSON object, to be put into the file.
ETUDE_EXPORT const char* etude_recorder_start(const char* path, const char* header,
                                              int integer_ranges) {
  const std::string document = etude::recorder::HeaderWithClocks(header == nullptr ? "" : header);
  std::string error;
  const etude::recorder::Options options{.integer_ranges = integer_ranges != 0};
  return Outcome(etude::recorder::Start(path, document, options, error), error);
}

// Ends the recording and completes its file.
ETUDE_EXPORT const char* etude_recorder_stop() {
  std::string error;
  return Outcome(etude::recorder::Stop(error), error);
}

ETUDE_EXPORT void etude_recorder_cut_off_child() { etude::recorder::CutOffChild(); }

ETUDE_EXPORT void etude_recorder_empty_callback(int on) {
  etude::recorder::SetEmptyCallback(on != 0);
}
