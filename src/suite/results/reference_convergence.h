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

// Epochs of a task to its target, with the settings, from a calibration: MLPerf's reference
// convergence point (docs/models/reference_convergence.md). Settings that an older calibration
// lacks are empty.
struct ConvergenceReference {
  std::string task;
  double target = 0;
  std::string scale;
  std::string precision;
  std::string optimizer;
  std::optional<int64_t> batch;
  std::optional<int64_t> samples;  // in the training set
  std::optional<int64_t> parameters;
  std::optional<int64_t> evaluate_every;  // steps

  std::vector<double> epochs;                 // to the target, of each run that reached it
  std::vector<std::optional<int64_t>> seeds;  // of these runs
  int64_t missed = 0;                         // number of runs that missed the target
};

// Parses the tasks of a file written by `etude suite calibrate`. kBadInput for other files.
Result<std::vector<ConvergenceReference>> ParseReferences(const std::string& path,
                                                          std::string_view text,
                                                          const RunContext& context);
// Returns the references built into the program.
Result<std::vector<ConvergenceReference>> BuiltInReferences(const RunContext& context);

// Returns the steps between evaluations of a record without this member: all evaluations but the
// last are equally spaced. nullopt before the first, and if the only one was due to the maximum of
// steps.
std::optional<int64_t> StepsBetweenEvaluations(const RunRecord& run);
// Returns the first evaluation that reaches the target; nullptr if there is none.
const QualityPoint* FirstReaching(const RunRecord& run, double target);
// Returns the epochs until then.
std::optional<double> EpochsTo(const RunRecord& run, double target);

// Runs of a task compared with its reference.
struct Convergence {
  enum class Verdict : uint8_t {
    kComparable,
    kTooFast,      // fewer epochs than the reference's spread explains
    kNoReference,  // for these settings
    kUnknown,
  };
  Verdict verdict = Verdict::kUnknown;
  std::string why;                  // for kNoReference and kUnknown
  std::optional<double> epochs;     // to the target, mean
  std::optional<double> reference;  // the reference's mean
  std::optional<double> least;      // lower bound of the mean
};
// Returns "comparable", "too_fast", "no_reference" or "unknown": stable, appears in --json.
std::string_view Name(Convergence::Verdict verdict);

// Returns the reference with the settings of a run; nullptr if there is none with all settings.
const ConvergenceReference* ReferenceFor(const RunRecord& run,
                                         std::span<const ConvergenceReference> references);

// Judges runs of one task in quality mode, with equal batch, optimizer and precision.
Convergence JudgeConvergence(std::span<const RunRecord> runs,
                             std::span<const ConvergenceReference> references);

// Returns "comparable" or "no reference for batch 64".
std::string VerdictText(const Convergence& convergence);
// Returns "13.9 epochs to the target (reference 13.8, at least 11): comparable".
std::string ToText(const Convergence& convergence);
nlohmann::ordered_json ToJson(const Convergence& convergence);

}  // namespace etude::suite
