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

// Where the step's time goes: of the mean rank, in ns. The last four make up the first.
struct SweepTimes {
  int64_t step = 0;  // until the last rank is done
  int64_t compute = 0;
  int64_t exposed_communication = 0;
  int64_t exposed_memory = 0;
  int64_t idle = 0;

  friend bool operator==(const SweepTimes&, const SweepTimes&) = default;
};

// The times by the names that they have in files and tables: "step_ns" … "idle_ns".
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

// What became of a point.
struct SweepOutcome {
  enum class State : uint8_t {
    kDone,
    kUnfinished,  // ranks wait for ever
    kRefused,     // job and machine do not fit together
  };
  State state = State::kDone;
  std::string why;                  // for others than kDone
  std::optional<SweepTimes> times;  // of kDone
  std::vector<std::string> notes;   // what the simulation leaves out, a line each
  std::optional<PlanFacts> plan;    // of a generated job

  friend bool operator==(const SweepOutcome&, const SweepOutcome&) = default;
};
std::string_view Name(SweepOutcome::State state);

// What a point is simulated from: two points with the same text have the same outcome. `job` and
// `programs` (of custom collectives) say what is in their files.
std::string SweepIdentity(const SweepPoint& point, const std::string& job,
                          const std::string& programs);

// The file of a point in a sweep's folder: its name by the identity, its text, and the outcome in
// such a text; nullopt if it is damaged or of another identity.
std::string SweepFileName(const std::string& identity);
std::string SweepFileText(const std::string& identity, const SweepOutcome& outcome);
std::optional<SweepOutcome> ReadSweepFile(std::string_view text, const std::string& identity);

// A point with its figures.
struct SweepRow {
  size_t point = 0;                 // from 0
  std::vector<std::string> labels;  // by axis
  int64_t npus = 0;
  double bandwidth = 0;  // GB/s of all links
  std::optional<double> cost;
  std::optional<Bytes> capacity;        // of a device's memory, as the spec says
  std::optional<SweepOutcome> outcome;  // nullopt: not simulated yet
  bool is_best = false;                 // of the Pareto front

  bool is_done() const { return outcome && outcome->state == SweepOutcome::State::kDone; }
  // Of a plan that is known; the spec's capacity counts before the device's.
  std::optional<Bytes> known_capacity() const;
  // Whether each rank's need fits into a device's memory; nullopt: not known.
  std::optional<bool> fits() const;
  // nullopt: the plan or the step time is not known.
  std::optional<PlanRates> rates() const;
};

// What points are ranked by, the best first.
enum class SweepOrder : uint8_t { kStep, kThroughput, kPerDevice, kMfu, kMemory, kCost };
inline constexpr SweepOrder kSweepOrders[] = {SweepOrder::kStep,      SweepOrder::kThroughput,
                                              SweepOrder::kPerDevice, SweepOrder::kMfu,
                                              SweepOrder::kMemory,    SweepOrder::kCost};
// "step", "throughput", "per-device" …, as --by has it.
std::string_view Name(SweepOrder order);
// For people: "throughput per device".
std::string_view Title(SweepOrder order);
// Throughput where it is known of all rows that are done, and of one kind of item; else step time.
SweepOrder DefaultOrder(const std::vector<SweepRow>& rows);
// The rows from the best to the worst: those that are done and fit, or of which that is not known;
// those that do not fit; those that are not done. What lacks the figure is behind those that have
// it, and rows that are equal are in the order of their points.
std::vector<const SweepRow*> Ranking(const std::vector<SweepRow>& rows, SweepOrder order);

// What the front is of, where the spec does not say: step time, or throughput where rows are ranked
// by it, and cost, or the first of bandwidth and NPUs that differs between rows; empty if none
// does.
std::vector<SweepMeasure> MeasuresOf(const SweepSpec& spec, const std::vector<SweepRow>& rows);
// Marks the front among the rows that are done and of which it is not known that they do not fit.
void MarkFront(const std::vector<SweepMeasure>& measures, std::vector<SweepRow>& rows);

}  // namespace etude
