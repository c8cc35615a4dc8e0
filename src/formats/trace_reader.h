#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/trace/trace.h"

namespace etude {

struct ReadOptions {
  // Truncated documents, malformed nodes and events, and bytes after the end are errors, instead of
  // being counted and reported.
  bool strict = false;
  // Native captures: keep the recorder's own time in the times, which are then those of the clock.
  bool keep_recorder_time = false;
};

// Makes a Trace from a file's uncompressed bytes: Push them in chunks of any size, then Finish
// once. After an error only destruction is allowed. Not thread-safe; the RunContext must outlive
// it.
class TraceReader {
 public:
  virtual ~TraceReader() = default;

  virtual Status Push(std::string_view chunk) = 0;
  // Returns the trace. `cut`: the file ends early (its compressed stream is truncated).
  virtual Result<Trace> Finish(bool cut) = 0;

  // Sets the number of bytes after the compressed data, to be counted by Finish.
  void set_foreign_bytes(uint64_t count) { foreign_bytes_ = count; }

 protected:
  uint64_t foreign_bytes() const { return foreign_bytes_; }

 private:
  uint64_t foreign_bytes_ = 0;
};

}  // namespace etude
