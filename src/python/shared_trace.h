#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace.h"
#include "src/transform/read_job.h"

namespace etude::python {

// Concatenated strings in valid UTF-8: string i is bytes[begins[i] .. begins[i + 1]).
struct Texts {
  std::vector<int64_t> begins;
  std::string bytes;
};

// A trace shared by Python objects and the arrays that they exported. Const methods are
// thread-safe.
class SharedTrace {
 public:
  // `input`: source of the trace; empty paths for a new one.
  SharedTrace(Trace trace, RankInput input) : trace_(std::move(trace)), input_(std::move(input)) {}

  const Trace& trace() const { return trace_; }
  const RankInput& input() const { return input_; }
  // Returns the rank from the folder or file name, otherwise from the trace, like inspections.
  std::optional<int64_t> rank() const { return input_.rank ? input_.rank : trace_.info().rank; }
  // Returns the strings of the trace by id. Computed by the first call.
  const Texts& texts() const;
  // Returns the cached result of `make` for `name`; the first call runs it.
  std::shared_ptr<const void> Kept(const std::string& name,
                                   const std::function<std::shared_ptr<const void>()>& make) const;

 private:
  Trace trace_;
  RankInput input_;
  mutable std::once_flag once_;
  mutable Texts texts_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const void>> kept_;
};
using TracePtr = std::shared_ptr<const SharedTrace>;

}  // namespace etude::python
