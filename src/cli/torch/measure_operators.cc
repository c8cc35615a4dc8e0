#include "src/cli/torch/measure_operators.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"
#include "src/suite/this_machine.h"
#include "src/torch/group/collective_timer.h"
#include "src/torch/operator_timer.h"
#include "src/torch/replayer.h"

namespace etude {
OperatorMachine OperatorMachineNow(int64_t threads, bool in_step, int64_t at_once) {
  return {.device = "cpu",
          .processor = suite::ThisMachine().cpu,
          .threads = threads,
          .torch = std::string(CollectiveTimer::TorchVersion()),
          .in_step = in_step,
          .at_once = at_once};
}

Result<OperatorTable> OpenOperatorTable(const std::string& path, const OperatorMachine& machine,
                                        const RunContext& context) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return OperatorTable{machine, {}};
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
  ETUDE_ASSIGN_OR_RETURN(OperatorTable table, ParseOperatorTable(text, path));
  if (table.times.empty()) return OperatorTable{machine, {}};
  const std::string difference = DifferenceOf(table.machine, machine);
  if (difference.empty()) return table;
  return BadInput(fmt::format("{}: the table describes another machine: {}; choose another file",
                              path, difference));
}

Result<OperatorsMeasured> MeasureOperators(const std::vector<StepToMeasure>& steps, bool in_step,
                                           int64_t most_rounds,
                                           const std::function<bool(const OperatorKey&)>& wanted,
                                           const RunContext& context, StepGate* gate) {
  // All trials come first: after a run there are threads, which a child lacks.
  std::vector<std::optional<Calibration>> found;
  for (const StepToMeasure& step : steps) {
    ETUDE_ASSIGN_OR_RETURN(found.emplace_back(),
                           Replayer::TryOut(*step.trace, step.options, context));
  }
  std::vector<OperatorTimer> timers;
  uint64_t total = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    ReplayOptions options = steps[i].options;
    options.calibration = found[i] ? &*found[i] : nullptr;
    ETUDE_ASSIGN_OR_RETURN(OperatorTimer timer,
                           OperatorTimer::Prepare(*steps[i].trace, options, context));
    timer.Want([&](const OperatorKey& key) {
      const bool is_taken =
          std::ranges::any_of(timers, [&](const OperatorTimer& other) { return other.Runs(key); });
      return !is_taken && wanted(key);
    });
    total += timer.wanted();
    timers.push_back(std::move(timer));
  }
  const auto chosen = [&](bool choice) { return gate == nullptr ? choice : gate->Pass(choice); };
  for (int64_t round = 0; chosen(round < most_rounds); ++round) {
    uint64_t stable = 0;
    for (OperatorTimer& timer : timers) {
      if (chosen(timer.stable() < timer.wanted())) ETUDE_RETURN_IF_ERROR(timer.Round(in_step));
      stable += timer.stable();
    }
    context.Progress("measure operators", stable, total);
    if (chosen(stable == total)) break;
  }
  context.Progress("measure operators", total, total);
  OperatorsMeasured measured;
  for (const OperatorTimer& timer : timers) {
    measured.times.merge(timer.Times());
    for (const auto& failure : timer.failures()) measured.failures.insert(failure);
  }
  return measured;
}

}  // namespace etude
