#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/replay/operator_rounds.h"
#include "src/torch/replay_options.h"
#include "src/torch/replayer.h"
#include "src/trace/trace.h"
#include "src/transform/operators/operator_key.h"
#include "src/transform/operators/operator_table.h"

namespace etude {

// Times the operators of one recorded step on the CPU by replaying it: as part of the step, or each
// repeated alone. Not thread-safe. The trace must outlive it.
class OperatorTimer {
 public:
  // Prepares the replay. Errors as in Replayer::Prepare, and kUnavailable for another device.
  static Result<OperatorTimer> Prepare(const Trace& trace, const ReplayOptions& options,
                                       const RunContext& context);

  // Chooses the operators to be measured among those that the step runs. Others are ignored.
  void Want(const std::function<bool(const OperatorKey&)>& wanted);
  // Returns the number of chosen operators, and of those that need no further round.
  size_t wanted() const { return rounds_.size(); }
  size_t stable() const;
  // Runs a step, and times the chosen operators that are not stable.
  Status Round(bool in_step);

  // Returns the measured times.
  std::map<OperatorKey, MeasuredCall> Times() const;
  // Returns why chosen operators could not be measured.
  const std::map<OperatorKey, std::string>& failures() const { return failures_; }
  // Returns whether a step runs the operator.
  bool Runs(const OperatorKey& key) const { return places_.contains(key); }

 private:
  explicit OperatorTimer(Replayer replayer) : replayer_(std::move(replayer)) {}
  Status TimeInStep();
  Status Repeat();

  Replayer replayer_;
  size_t operators_ = 0;                               // of a step
  std::map<OperatorKey, std::vector<size_t>> places_;  // by key: positions among the operators
  std::map<OperatorKey, OperatorRounds> rounds_;       // of chosen operators
  std::map<OperatorKey, std::string> failures_;
};

}  // namespace etude
