#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/trace/trace.h"

namespace at {
struct RecordFunction;
}

namespace etude {

// Marks step `index` of a recording during its lifetime.
class StepMark {
 public:
  explicit StepMark(int64_t index);
  ~StepMark();
  StepMark(const StepMark&) = delete;
  StepMark& operator=(const StepMark&) = delete;

 private:
  std::unique_ptr<at::RecordFunction> range_;
};

// Calls `run` for each step while Etude's recorder records this process, and returns the recorded
// trace. `run` puts a StepMark around the step. The recording is kept in `path`; if `path` is "",
// it is not kept, and a failure to write it is only a warning and returns nullopt. The steps run in
// any case, because other ranks run theirs.
Result<std::optional<Trace>> RecordSteps(int64_t steps,
                                         const std::function<Status(int64_t index)>& run,
                                         const std::string& path, const RunContext& context);

}  // namespace etude
