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

// The mark around step `index` of a recording, as long as it lives.
class StepMark {
 public:
  explicit StepMark(int64_t index);
  ~StepMark();
  StepMark(const StepMark&) = delete;
  StepMark& operator=(const StepMark&) = delete;

 private:
  std::unique_ptr<at::RecordFunction> range_;
};

// Calls `run` once for each step while Etude's own recorder records this process, and reads what it
// wrote. `run` puts a StepMark around what is the step. The recording is kept in `path`,
// or nowhere if that is "": then a recording that cannot be written is no error but a warning and
// nullopt, and the steps run all the same, because other ranks run theirs.
Result<std::optional<Trace>> RecordSteps(int64_t steps,
                                         const std::function<Status(int64_t index)>& run,
                                         const std::string& path, const RunContext& context);

}  // namespace etude
