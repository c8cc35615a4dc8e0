#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/certificate/run_facts.h"

namespace etude::suite {

// One evaluation of a run.
struct QualityPoint {
  int64_t step = 0;               // steps done
  double seconds = 0;             // since the start, including this evaluation
  double evaluation_seconds = 0;  // of this evaluation
  double quality = 0;             // NaN if training diverged
  std::optional<double>
      loss;  // mean over the steps since the previous evaluation; nullopt before the first
};

// An additional figure of the test data: "NDCG@10". A figure with a text has no value.
struct Figure {
  std::string name;
  double value = 0;
  std::string text = {};
};

// Hardware events of one step in user mode, by the mean over the timed steps; nullopt for a counter
// that is not available.
struct StepCounters {
  std::optional<double> instructions;
  std::optional<double> cycles;
  std::optional<double> cache_misses;
  std::optional<double> branch_misses;
};

// Value of a setting that is an option without a value.
inline constexpr std::string_view kSettingIsFlag = "yes";

// Origin of a target that the user gave.
inline constexpr std::string_view kGivenTarget = "given";

// One run of a task: settings, environment and result. Stored as run.json;
// docs/formats/suite_run.md.
struct RunRecord {
  std::string task;
  std::string aibench;
  std::string scale;  // "smoke", "paper"
  std::string mode;   // "quality", "steps"
  int64_t seed = 0;
  std::string device;
  std::string precision;
  int64_t ranks = 1;
  int64_t threads = 1;  // per rank
  int64_t batch = 0;
  int64_t samples = 0;  // in the training set
  // In steps; nullopt in steps mode and in older records.
  std::optional<int64_t> evaluate_every;
  int64_t parameters = 0;
  std::string optimizer;  // "adam 0.002"
  // User settings by option: kept_run.h. nullopt: the record is older.
  std::optional<NamedTexts> settings;
  std::string data_set;  // for tasks with several data sets; otherwise, or if unknown, ""

  std::string metric;
  bool higher_is_better = true;
  std::optional<double> target;
  std::string target_origin;  // "measured", "found", "recalled", "given"; "" without a target
  std::optional<double> baseline;

  bool complete = false;          // whether the run ended regularly
  bool reached = false;           // the target; of a run in steps mode, false
  std::optional<double> quality;  // the last
  std::vector<Figure> figures;    // further ones at the end; none for most tasks
  int64_t steps = 0;
  double started = 0;             // seconds since 1970
  double seconds = 0;             // from before data are first accessed
  double setup_seconds = 0;       // part before the first step: reading data, making the model
  double evaluation_seconds = 0;  // part for evaluations
  std::optional<double> energy_j;
  std::string why_no_energy;
  int64_t skipped_steps = 0;         // due to overflowing gradients
  std::optional<double> loss_scale;  // at the end, if in use
  std::optional<double> underflow;   // mean share of gradient values that float16 would lose
  std::optional<int64_t> peak_bytes;
  std::vector<QualityPoint> curve;
  std::vector<double> step_seconds;      // timed steps in steps mode
  std::optional<StepCounters> counters;  // in steps mode, if any is available
  std::string why_no_counters;
  std::optional<double> noise;  // machine noise, by equal work: ninth decile / first decile - 1
  // Mean number of cores used by other programs during the run; for a resumed run, during its last
  // part.
  std::optional<double> others_cores;
  MachineFacts machine;
  std::string torch;

  double epochs() const;
  // Excludes evaluations and set-up; nullopt before the first step.
  std::optional<double> samples_per_second() const;
};

// Returns the command that runs the task with the settings of the record, without its data folder:
// "etude suite run …".
std::vector<std::string> CommandOf(const RunRecord& run);
// Returns "image-classification" or "speech-recognition on spoken-digits".
std::string TaskText(const RunRecord& run);
// Returns a readable line: "image-classification, seed 1: reached …".
std::string ToText(const RunRecord& run);
nlohmann::ordered_json ToJson(const RunRecord& run);
// Returns NaN without values.
double Median(std::vector<double> values);

// Read or parse a record. kIo for an unreadable file, kBadInput for an invalid one.
Result<RunRecord> ReadRunRecord(const std::string& path, const RunContext& context);
Result<RunRecord> ParseRunRecord(const std::string& path, std::string_view text,
                                 const RunContext& context);

}  // namespace etude::suite
