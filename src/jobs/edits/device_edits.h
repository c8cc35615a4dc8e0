#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"
#include "src/transform/runnable/element_type.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// DeviceEditOptions::launch_cost: the host's recorded times.
inline constexpr std::string_view kRecordedLaunches = "recorded";

// Options of edits of the device and of what it runs, as texts of the command line; "": as
// recorded.
struct DeviceEditOptions {
  std::string dtype;              // of floating-point tensors: "bfloat16"
  std::vector<std::string> fuse;  // chains of operators: "aten::add,aten::relu"
  bool no_gaps = false;           // no time of the host between operators
  // Time of the host per launch of device work, "5us", or kRecordedLaunches.
  std::string launch_cost;

  bool empty() const { return dtype.empty() && fuse.empty() && !no_gaps && launch_cost.empty(); }
  friend bool operator==(const DeviceEditOptions&, const DeviceEditOptions&) = default;
};

// Edits of work and launches, in the order of the functions. Not thread-safe.
class DeviceEdits {
 public:
  DeviceEdits() = default;  // without edits
  // kUsage for options of the wrong form.
  static Result<DeviceEdits> Make(const DeviceEditOptions& options);

  // Changes element types of a rank made of `trace`. kBadInput, with the reason, for jobs that do
  // not support this.
  Status EditTypes(const Trace& trace, RunnableRank& rank);
  // Fuses operators and removes gaps. Errors as above.
  Status EditWork(const Trace& trace, RunnableRank& rank);
  // Adds launches. Errors as above.
  Status EditLaunches(const Trace& trace, RunnableRank& rank);

  // Return the edits in the order in which they were made: of types, of work and of launches.
  std::vector<AppliedEdit> AppliedToTypes() const;
  std::vector<AppliedEdit> AppliedToWork() const;
  std::vector<AppliedEdit> AppliedToLaunches() const;

 private:
  DeviceEditOptions options_;
  DType type_ = DType::kUnknown;
  std::vector<std::vector<std::string>> chains_;
  std::optional<Nanos> launch_cost_;
  TypeChange types_;  // of all ranks
  Nanos gap_time_;    // removed
  AppliedEdit typed_;
  std::vector<AppliedEdit> fused_;  // by option
  AppliedEdit gaps_;
  AppliedEdit launches_;
};

}  // namespace etude
