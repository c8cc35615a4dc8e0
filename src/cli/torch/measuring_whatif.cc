#include "src/cli/torch/measuring_whatif.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/analysis/compare/step_kinds.h"
#include "src/cli/simulate/whatif.h"
#include "src/cli/torch/measure_operators.h"
#include "src/cli/torch/replay_kinds.h"
#include "src/cli/torch/replay_source.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/what_if.h"
#include "src/replay/operator_rounds.h"

namespace etude {
namespace {

// Measures the operators of a job before and after an edit, and keeps them in a table, if a file
// was given for it.
class ReplayMeasurer {
 public:
  ReplayMeasurer(const SimJobOptions& job, const Console& console) : job_(job), console_(console) {}

  Result<MeasuredOperators> Measure(size_t rank, const Trace& recorded, const Trace& edited,
                                    const std::set<OperatorKey>& keys) {
    const RunContext& context = console_.context();
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source, Open(rank));
    ReplayOptions options;
    options.device = "cpu";
    FollowProgram(source, std::nullopt, options);
    // They belong to the recorded sizes.
    options.minor_faults = std::nullopt;
    options.launched = nullptr;
    const std::string& path = job_.what_if.operators;
    if (!table_) {
      ETUDE_ASSIGN_OR_RETURN(
          table_,
          OpenOperatorTable(path, OperatorMachineNow(options.threads, /*in_step=*/true), context));
    }
    // Rows that are too noisy are measured again.
    const auto is_missing = [&](const OperatorKey& key) {
      const MeasuredCall* time = keys.contains(key) ? table_->Find(key) : nullptr;
      return keys.contains(key) && (time == nullptr || time->noisy);
    };
    std::vector<StepToMeasure> steps;
    for (const Trace* trace : {&recorded, &edited}) {
      for (const StepKind& kind : FindStepKinds(*trace)) {
        TakeStep(kind, options);
        steps.push_back({trace, options});
      }
    }
    MeasuredOperators measured;
    if (std::ranges::any_of(keys, is_missing)) {
      ETUDE_ASSIGN_OR_RETURN(
          const OperatorsMeasured times,
          MeasureOperators(steps, table_->machine.in_step, kUsualMostRounds, is_missing, context));
      for (const auto& [key, time] : times.times) table_->times.insert_or_assign(key, time);
      for (const auto& [key, reason] : times.failures) measured.failures[key.name] = reason;
      if (!path.empty()) ETUDE_RETURN_IF_ERROR(WriteFile(path, OperatorTableText(*table_)));
    }
    measured.times = measured.recorded = *table_;
    return measured;
  }

 private:
  Result<ReplaySource> Open(size_t rank) const {
    const auto open = [&](const std::string& path, std::optional<int64_t> number) {
      return OpenSource(path, number, console_.strict(), console_.context().Unwarned());
    };
    if (job_.paths.size() > 1) {
      return open(job_.paths[std::min(rank, job_.paths.size() - 1)], std::nullopt);
    }
    if (!IsFolder(job_.paths.front())) return open(job_.paths.front(), std::nullopt);
    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks,
                           ChooseRanks(job_.paths.front(), "all", console_.context().Unwarned()));
    return open(job_.paths.front(), ranks.present[rank]);
  }

  SimJobOptions job_;
  const Console& console_;
  std::optional<OperatorTable> table_;
};

Result<OperatorMeasurer> MakeReplayMeasurer(const SimJobOptions& job, const Console& console) {
  return OperatorMeasurer([measurer = std::make_shared<ReplayMeasurer>(job, console)](
                              size_t rank, const Trace& recorded, const Trace& edited,
                              const std::set<OperatorKey>& keys) {
    return measurer->Measure(rank, recorded, edited, keys);
  });
}

}  // namespace

std::unique_ptr<Command> MakeMeasuringWhatIfCommand() {
  return MakeMeasuringWhatIfCommand(&MakeReplayMeasurer);
}

}  // namespace etude
