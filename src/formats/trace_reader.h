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
  // Cut documents, malformed nodes and events, and bytes after the end are errors instead of
  // counted and reported.
  bool strict = false;
  // Native captures: the time that the recorder spent stays in the times, so that these are those
  // of the clock.
  bool keep_recorder_time = false;
};

// Makes a Trace of a file's uncompressed bytes: Push them in chunks of any size, then Finish once.
// After an error nothing but destruction is allowed. Not thread-safe; the RunContext it was made
// with must outlive it.
class TraceReader {
 public:
  virtual ~TraceReader() = default;

  virtual Status Push(std::string_view chunk) = 0;
  // `cut`: the file is known to end early (its compressed stream does).
  virtual Result<Trace> Finish(bool cut) = 0;

  // Bytes that follow the compressed data without belonging to it, to be counted by Finish.
  void set_foreign_bytes(uint64_t count) { foreign_bytes_ = count; }

 protected:
  uint64_t foreign_bytes() const { return foreign_bytes_; }

 private:
  uint64_t foreign_bytes_ = 0;
};

}  // namespace etude
