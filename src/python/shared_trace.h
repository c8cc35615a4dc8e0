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

// Strings one behind the other, valid UTF-8: string i is bytes[begins[i] .. begins[i + 1]).
struct Texts {
  std::vector<int64_t> begins;
  std::string bytes;
};

// A trace that Python objects and the arrays they gave out keep alive together. Const methods may
// be called from several threads.
class SharedTrace {
 public:
  // `input` is where it was read; empty paths if it was made.
  SharedTrace(Trace trace, RankInput input) : trace_(std::move(trace)), input_(std::move(input)) {}

  const Trace& trace() const { return trace_; }
  const RankInput& input() const { return input_; }
  // What its folder or its file's name says, else what the trace does: as inspections name it.
  std::optional<int64_t> rank() const { return input_.rank ? input_.rank : trace_.info().rank; }
  // The strings of the trace by their ids, made on the first call.
  const Texts& texts() const;
  // What `make` makes for the first who asks for `name`; kept for all others.
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
