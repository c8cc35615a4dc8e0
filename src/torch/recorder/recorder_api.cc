// C API for Python's ctypes. Texts are UTF-8 and null-terminated. Functions that can fail return
// null, or an error message that is valid until the thread's next call.

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/torch/recorder/callback_cost.h"
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

// Returns the version of torch that this library was built for.
ETUDE_EXPORT const char* etude_recorder_torch_version() { return ETUDE_TORCH_VERSION; }

// Starts recording to `path`. `header`: members of a JSON object for the file. `integers`: 0 skips
// integer arguments, 1 records ranges, 2 also statistics of indices, 3 statistics of all. The file
// grows to about `most_bytes` (0: 8 GiB); later events are dropped. `allocations`: record memory of
// the CPU allocator. `callback_cost`: measure PyTorch's cost per callback, which readers subtract
// from times. `index_value_bytes`: total size of tensors with statistics that are recorded
// completely.
ETUDE_EXPORT const char* etude_recorder_start(const char* path, const char* header, int integers,
                                              unsigned long long most_bytes, int allocations,
                                              int callback_cost,
                                              unsigned long long index_value_bytes) {
  std::string members = header == nullptr ? "" : header;
  if (callback_cost != 0) {
    members = "\"callback_ns\": " + std::to_string(etude::recorder::MeasureCallback()) +
              (members.empty() ? "" : ", ") + members;
  }
  std::string error;
  using Statistics = etude::recorder::Options::Statistics;
  etude::recorder::Options options{.integer_ranges = integers > 0};
  options.allocations = allocations != 0;
  options.index_value_bytes =
      static_cast<int64_t>(std::min<unsigned long long>(index_value_bytes, INT64_MAX));
  if (most_bytes != 0) options.most_file_bytes = most_bytes;
  if (integers == 2) options.statistics = Statistics::kIndices;
  if (integers >= 3) options.statistics = Statistics::kAllIntegers;
  return Outcome(
      etude::recorder::Start(path, etude::recorder::HeaderWithClocks(members), options, error),
      error);
}

// Ends the recording and completes its file.
ETUDE_EXPORT const char* etude_recorder_stop() {
  std::string error;
  return Outcome(etude::recorder::Stop(error), error);
}

// Begins a label; `name` must live until its end. End it on the same thread with the other
// function.
ETUDE_EXPORT void* etude_recorder_enter_label(const char* name) {
  return etude::recorder::EnterLabel(name);
}
ETUDE_EXPORT void etude_recorder_leave_label(void* label) { etude::recorder::LeaveLabel(label); }

// Counts the time since `begin_ns` (CLOCK_MONOTONIC) on this thread as the recorder's own.
ETUDE_EXPORT void etude_recorder_spent_since(long long begin_ns) {
  etude::recorder::SpentSince(begin_ns);
}

ETUDE_EXPORT void etude_recorder_cut_off_child() { etude::recorder::CutOffChild(); }

ETUDE_EXPORT void etude_recorder_empty_callback(int on) {
  etude::recorder::SetEmptyCallback(on != 0);
}
