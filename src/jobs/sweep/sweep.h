#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sweep/edited_plans.h"
#include "src/jobs/sweep/sweep_jobs.h"
#include "src/report/tables/sweep_tables.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_result.h"
#include "src/sim/sweep/sweep_spec.h"
#include "src/synth/device/misfit.h"

namespace etude {

// A part of a sweep: from every `of` distinct points the one with this number.
struct SweepShard {
  int64_t number = 1;  // from 1
  int64_t of = 1;
};

// A sweep to run: the settings of `etude sweep`.
struct SweepRequest {
  std::string spec;    // a file in TOML: docs/formats/sweep.md
  std::string folder;  // folder of results, created if missing; "" only for a dry run
  std::string report;  // file of a page with charts; "": none
  SweepShard shard;
  std::optional<SweepOrder> order;  // ranking of points; nullopt: DefaultOrder
  int64_t threads = 0;              // points simulated at a time; 0: one for each core
  bool strict = false;              // whether damaged traces are refused
  bool dry_run = false;             // whether nothing is simulated and written
};

// Numbers of simulated and refused points of a run.
struct SweepCounts {
  size_t simulated = 0;
  size_t refused = 0;
  size_t excluded = 0;  // by constraints, without simulation
};

// A sweep, step by step: Prepare, Simulate unless it is a dry run, Finish. Only one thread may call
// it.
class Sweep {
 public:
  explicit Sweep(SweepRequest request);

  // Makes all points of the shard, and reads the outcomes in the folder. Damaged files there count
  // as missing. Returns kBadInput with the place for an invalid specification, and kUsage if
  // results would overwrite their inputs.
  Status Prepare(const RunContext& context);

  // Simulates the remaining points. Returns kInterrupted, with the number of finished points, if
  // the context is interrupted. Finished points are kept.
  Result<SweepCounts> Simulate(const RunContext& context);

  // Returns the results. Unless it is a dry run, writes sweep.json and sweep.csv of a whole sweep
  // into its folder, and the page.
  Result<SweepResults> Finish();

 private:
  // Points with the same inputs, which are simulated once.
  struct Task {
    std::string identity;
    std::string job_hash;
    std::vector<size_t> rows;  // at least one
  };

  Status Plan(const RunContext& context);
  // Removes plans that no model of the sweep can have from the axis of [[plans]], and counts them.
  Status RemoveImpossiblePlans(const RunContext& context);
  // Returns why a choice of the axis of [[plans]] makes no job with any choice of other axes that
  // concern jobs. Returns nullopt if it does with one of them, or if this is known only when jobs
  // are made.
  Result<std::optional<Misfit>> MisfitOf(SweepPlanner& planner, size_t plan_axis, size_t choice,
                                         const RunContext& context);
  // Returns a point, with the plan of its job edited.
  Result<SweepPoint> PointAt(SweepPlanner& planner, size_t index, const RunContext& context);
  Status PlanPoint(size_t index, std::map<std::string, size_t>& known, const RunContext& context);
  void KeepShard();
  // Returns kUsage if `output` is one of its own inputs.
  Status CheckIsNoInput(const std::string& output) const;
  Status TakeKept(const RunContext& context);
  std::string PointPath(const Task& task) const;
  void SetOutcome(const Task& task, const SweepOutcome& outcome);
  size_t RowsLeft() const;
  void RunTasks(const std::vector<const Task*>& open, const RunContext& context);
  // Returns the plan of a task's generated job if it violates a constraint in all points.
  Result<std::optional<PlanFacts>> ViolatingPlan(const Task& task, const SweepPoint& point,
                                                 const RunContext& context) const;
  Status RunTask(const Task& task, std::shared_ptr<const SimJob>& last, const RunContext& context);
  Result<SweepOutcome> OutcomeOf(const Task& task, std::shared_ptr<const SimJob>& last,
                                 const RunContext& context);
  // Returns the path of a file of results.
  std::string InFolder(std::string_view name) const;

  const SweepRequest request_;
  SweepSpec spec_;
  std::optional<SweepPlanner> planner_;  // of spec_
  EditedPlans plans_;
  SweepJobs jobs_;
  std::vector<Task> tasks_;
  SweepResults results_;
  std::mutex
      mutex_;  // guards planner_, plans_, results_, error_, said_ and the context while tasks run
  std::optional<Error> error_;
  std::set<std::string, std::less<>> said_;  // issued warnings
};

// Runs a sweep, or continues it. Points whose outcomes are in the folder are not simulated again.
Result<SweepResults> RunSweep(const SweepRequest& request, const RunContext& context);

}  // namespace etude
