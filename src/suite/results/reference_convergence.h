#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {

// How many epochs a task takes to its target, and with which settings: what a calibration found,
// MLPerf's reference convergence point (docs/models/reference_convergence.md). Settings that an
// older calibration does not say are empty.
struct ConvergenceReference {
  std::string task;
  double target = 0;
  std::string scale;
  std::string precision;
  std::string optimizer;
  std::optional<int64_t> batch;
  std::optional<int64_t> samples;  // of the training set
  std::optional<int64_t> parameters;
  std::optional<int64_t> evaluate_every;  // steps

  std::vector<double> epochs;  // to the target, of each run that reached it
  int64_t missed = 0;          // runs that did not
};

// The tasks of a file that `etude suite calibrate` wrote. kBadInput if it is none.
Result<std::vector<ConvergenceReference>> ParseReferences(const std::string& path,
                                                          std::string_view text,
                                                          const RunContext& context);
// Those that the program was built with.
Result<std::vector<ConvergenceReference>> BuiltInReferences(const RunContext& context);

// Of a record that does not say: every evaluation but the last comes after equally many; unknown
// before the first, and where the only one came because of the most steps.
std::optional<int64_t> StepsBetweenEvaluations(const RunRecord& run);
// The first evaluation of a run that is as good as the target; nullptr if there is none.
const QualityPoint* FirstReaching(const RunRecord& run, double target);
// Epochs until then.
std::optional<double> EpochsTo(const RunRecord& run, double target);

// Runs of a task beside its reference.
struct Convergence {
  enum class Verdict : uint8_t {
    kComparable,
    kTooFast,      // fewer epochs than the reference's spread explains
    kNoReference,  // for these settings
    kUnknown,
  };
  Verdict verdict = Verdict::kUnknown;
  std::string why;                  // of kNoReference and kUnknown
  std::optional<double> epochs;     // to the target, the mean
  std::optional<double> reference;  // the reference's mean
  std::optional<double> least;      // what the mean must not be below
};
// "comparable", "too_fast", "no_reference", "unknown": stable, appears in --json.
std::string_view Name(Convergence::Verdict verdict);

// `runs` are of one task with one batch, optimizer and precision, in quality mode.
Convergence JudgeConvergence(std::span<const RunRecord> runs,
                             std::span<const ConvergenceReference> references);

// "comparable", "no reference for batch 64".
std::string VerdictText(const Convergence& convergence);
// "13.9 epochs to the target (reference 13.8, at least 11): comparable".
std::string ToText(const Convergence& convergence);
nlohmann::ordered_json ToJson(const Convergence& convergence);

}  // namespace etude::suite
