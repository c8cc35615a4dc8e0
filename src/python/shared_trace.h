#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace.h"

namespace etude::python {

// Strings one behind the other, valid UTF-8: string i is bytes[begins[i] .. begins[i + 1]).
struct Texts {
  std::vector<int64_t> begins;
  std::string bytes;
};

// A trace that Python objects and the arrays they gave out keep alive together. Const methods may
// be called from several threads.
class SharedTrace {
 public:
  SharedTrace(Trace trace, std::optional<int64_t> rank, std::string path)
      : trace_(std::move(trace)), rank_(rank), path_(std::move(path)) {}

  const Trace& trace() const { return trace_; }
  // What the trace says of its rank, else what its file's name does.
  std::optional<int64_t> rank() const { return trace_.info().rank ? trace_.info().rank : rank_; }
  // Where it was read; "" if it was made.
  const std::string& path() const { return path_; }
  // The strings of the trace by their ids, made on the first call.
  const Texts& texts() const;

 private:
  Trace trace_;
  std::optional<int64_t> rank_;
  std::string path_;
  mutable std::once_flag once_;
  mutable Texts texts_;
};
using TracePtr = std::shared_ptr<const SharedTrace>;

}  // namespace etude::python
