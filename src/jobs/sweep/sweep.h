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
#include "src/jobs/sweep/sweep_jobs.h"
#include "src/report/tables/sweep_tables.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_result.h"
#include "src/sim/sweep/sweep_spec.h"
#include "src/synth/device/misfit.h"

namespace etude {

// A part of a sweep: of every `of` distinct points the one with this number.
struct SweepShard {
  int64_t number = 1;  // from 1
  int64_t of = 1;
};

// A sweep to run: what `etude sweep` is told.
struct SweepRequest {
  std::string spec;    // a file in TOML: docs/formats/sweep.md
  std::string folder;  // of results, made if need be; may only be "" for a dry run
  std::string report;  // file of a page with charts; "": none
  SweepShard shard;
  std::optional<SweepOrder> order;  // what points are ranked by; nullopt: DefaultOrder
  int64_t threads = 0;              // points simulated at a time; 0: as many as there are cores
  bool strict = false;              // damaged traces are refused
  bool dry_run = false;             // nothing is simulated and written
};

// How many points a run has simulated, and how many were refused.
struct SweepCounts {
  size_t simulated = 0;
  size_t refused = 0;
};

// A sweep, step by step: Prepare, Simulate unless it is a dry run, Finish. One thread may call it.
class Sweep {
 public:
  explicit Sweep(SweepRequest request);

  // Makes all points of the shard, and takes the outcomes that the folder has. Files there that are
  // damaged count as none. kBadInput for what is wrong with the specification, with its place;
  // kUsage where results would overwrite what they are made of.
  Status Prepare(const RunContext& context);

  // Simulates what is not known. kInterrupted, with how many are done, once the context says so;
  // points that are done are kept.
  Result<SweepCounts> Simulate(const RunContext& context);

  // The results. Unless it is a dry run, writes sweep.json and sweep.csv of a whole sweep into its
  // folder, and the page.
  Result<SweepResults> Finish();

 private:
  // Points that are simulated from the same, and thus once.
  struct Task {
    std::string identity;
    std::string job_hash;
    std::vector<size_t> rows;  // at least one
  };

  Status Plan(const RunContext& context);
  // Takes plans that no model of the sweep can have out of the axis of [[plans]], and counts them.
  Status RemoveImpossiblePlans(const RunContext& context);
  // Why a choice of the axis of [[plans]] makes no job with any of what other axes say of jobs;
  // nullopt: with one of them it does, or that shows only when jobs are made.
  Result<std::optional<Misfit>> MisfitOf(SweepPlanner& planner, size_t plan_axis, size_t choice,
                                         const RunContext& context);
  Status PlanPoint(size_t index, std::map<std::string, size_t>& known, const RunContext& context);
  void KeepShard();
  // Refuses with kUsage to write to `output` what it is made of.
  Status CheckIsNoInput(const std::string& output) const;
  Status TakeKept(const RunContext& context);
  std::string PointPath(const Task& task) const;
  void SetOutcome(const Task& task, const SweepOutcome& outcome);
  size_t RowsLeft() const;
  void RunTasks(const std::vector<const Task*>& open, const RunContext& context);
  Status RunTask(const Task& task, std::shared_ptr<const SimJob>& last, const RunContext& context);
  Result<SweepOutcome> OutcomeOf(const Task& task, std::shared_ptr<const SimJob>& last,
                                 const RunContext& context);
  // The path of a file of results.
  std::string InFolder(std::string_view name) const;

  const SweepRequest request_;
  SweepSpec spec_;
  std::optional<SweepPlanner> planner_;  // of spec_
  SweepJobs jobs_;
  std::vector<Task> tasks_;
  SweepResults results_;
  std::mutex mutex_;  // of planner_, results_, error_, said_ and the context while tasks run
  std::optional<Error> error_;
  std::set<std::string, std::less<>> said_;  // warnings
};

// Runs a sweep, or goes on with it: points whose outcomes are in the folder are not simulated
// again.
Result<SweepResults> RunSweep(const SweepRequest& request, const RunContext& context);

}  // namespace etude
