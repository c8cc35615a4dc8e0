#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/sim/engine/simulator.h"
#include "src/sim/sweep/plan_facts.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Times of the mean rank in ns. The last four add up to the step.
struct SweepTimes {
  int64_t step = 0;  // until the end of the last rank
  int64_t compute = 0;
  int64_t exposed_communication = 0;
  int64_t exposed_memory = 0;
  int64_t idle = 0;

  friend bool operator==(const SweepTimes&, const SweepTimes&) = default;
};

// Names of the times in files and tables: "step_ns" … "idle_ns".
struct SweepTimeColumn {
  const char* key;
  const char* title;
  int64_t SweepTimes::*time;
};
inline constexpr SweepTimeColumn kSweepTimes[] = {
    {"step_ns", "step", &SweepTimes::step},
    {"compute_ns", "compute", &SweepTimes::compute},
    {"exposed_communication_ns", "exposed comm", &SweepTimes::exposed_communication},
    {"exposed_memory_ns", "exposed memory", &SweepTimes::exposed_memory},
    {"idle_ns", "idle", &SweepTimes::idle},
};

// Outcome of a point.
struct SweepOutcome {
  enum class State : uint8_t {
    kDone,
    kUnfinished,  // deadlock
    kRefused,     // job and machine are incompatible
    kExcluded,    // violates a constraint; in no file
  };
  State state = State::kDone;
  std::string why;                  // for states other than kDone
  std::optional<SweepTimes> times;  // for kDone
  std::vector<std::string> notes;   // limitations of the simulation, one line each
  std::optional<PlanFacts> plan;    // for a generated job
  std::optional<double> energy;     // of a step, J; for kDone with figures of energy
  std::optional<int64_t> ranks;     // of the job, if the machine has as many NPUs

  friend bool operator==(const SweepOutcome&, const SweepOutcome&) = default;
};
std::string_view Name(SweepOutcome::State state);

// Returns a text that identifies a simulation: points with equal texts have the same outcome. `job`
// and `programs` (of custom collectives) identify the contents of their files.
std::string SweepIdentity(const SweepPoint& point, const std::string& job,
                          const std::string& programs);

// Name and text of a point's file in a sweep's folder, and its reader, which returns nullopt for a
// damaged file or another identity.
std::string SweepFileName(const std::string& identity);
std::string SweepFileText(const std::string& identity, const SweepOutcome& outcome);
std::optional<SweepOutcome> ReadSweepFile(std::string_view text, const std::string& identity);

// A point with its figures.
struct SweepRow {
  size_t point = 0;                 // from 0
  std::vector<std::string> labels;  // by axis
  int64_t npus = 0;                 // 0: not known yet
  std::optional<double> bandwidth;  // GB/s, sum over links; nullopt: unknown
  std::optional<double> cost;
  std::optional<Bytes> capacity;        // device memory, as set in the spec
  std::optional<SweepOutcome> outcome;  // nullopt: not simulated yet
  bool is_best = false;                 // on the Pareto front

  bool is_excluded() const { return outcome && outcome->state == SweepOutcome::State::kExcluded; }
  bool is_done() const { return outcome && outcome->state == SweepOutcome::State::kDone; }
  // Returns the capacity if the plan is known; the spec's takes precedence over the device's.
  std::optional<Bytes> known_capacity() const;
  // Returns whether each rank fits into device memory; nullopt: unknown.
  std::optional<bool> fits() const;
  // Returns the rates; nullopt if the plan or step time is unknown.
  std::optional<PlanRates> rates() const;
  // Returns the time of a step times its ranks, in seconds; nullopt if not done.
  std::optional<double> rank_seconds() const;
  // Returns the energy of a step in J; nullopt if unknown.
  std::optional<double> energy() const { return is_done() ? outcome->energy : std::nullopt; }
};

// Returns the constraint that a row with this plan violates, "memory above the limit"; "": none.
std::string ViolationOf(const SweepConstraints& constraints, const SweepRow& row,
                        const PlanFacts& plan);
// Excludes the rows that violate a constraint.
void Exclude(const SweepConstraints& constraints, std::vector<SweepRow>& rows);

// Figure by which points are ranked.
enum class SweepOrder : uint8_t {
  kStep,
  kThroughput,
  kPerDevice,
  kMfu,
  kMemory,
  kCost,
  kRankSeconds,
  kEnergy,
};
inline constexpr SweepOrder kSweepOrders[] = {
    SweepOrder::kStep,   SweepOrder::kThroughput, SweepOrder::kPerDevice,   SweepOrder::kMfu,
    SweepOrder::kMemory, SweepOrder::kCost,       SweepOrder::kRankSeconds, SweepOrder::kEnergy};
// Returns the name used by --by: "step", "throughput", "per-device", …
std::string_view Name(SweepOrder order);
// Returns the title: "throughput per device".
std::string_view Title(SweepOrder order);
// Returns throughput if all finished rows have it for one kind of item; otherwise step time.
SweepOrder DefaultOrder(const std::vector<SweepRow>& rows);
// Returns the rows from best to worst: finished rows that fit or may fit, then rows that do not
// fit, then unfinished rows. Rows that lack the figure come after those that have it. Ties keep the
// order of points.
std::vector<const SweepRow*> Ranking(const std::vector<SweepRow>& rows, SweepOrder order);

// Returns the measures of the Pareto front if the spec has none: step time, or throughput if rows
// are ranked by it; and cost, or the first of bandwidth and NPUs that differs between rows. Empty
// if none differs.
std::vector<SweepMeasure> MeasuresOf(const SweepSpec& spec, const std::vector<SweepRow>& rows);
// Marks the Pareto front among finished rows, except those known not to fit.
void MarkFront(const std::vector<SweepMeasure>& measures, std::vector<SweepRow>& rows);

}  // namespace etude
