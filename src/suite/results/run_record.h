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
  double seconds = 0;             // since the start, this evaluation included
  double evaluation_seconds = 0;  // of these, for this evaluation
  double quality = 0;             // not a number where training diverged
  std::optional<double>
      loss;  // mean over the steps since the last evaluation; before the first, none
};

// A figure of the data held out beside a task's metric: "NDCG@10".
struct Figure {
  std::string name;
  double value = 0;
};

// Where a target is from that the user gave.
inline constexpr std::string_view kGivenTarget = "given";

// One run of a task: what was run, on what, and how it went. run.json; docs/formats/suite_run.md.
struct RunRecord {
  std::string task;
  std::string aibench;
  std::string scale;  // "smoke", "paper"
  std::string mode;   // "quality", "steps"
  int64_t seed = 0;
  std::string device;
  std::string precision;
  int64_t ranks = 1;
  int64_t threads = 1;  // of each rank
  int64_t batch = 0;
  int64_t samples = 0;  // of the training set
  // Steps; none in steps mode, and in records that are older.
  std::optional<int64_t> evaluate_every;
  int64_t parameters = 0;
  std::string optimizer;  // "adam 0.002"
  // What the user said instead of the task, by option: kept_run.h. None: the record is older.
  std::optional<NamedTexts> settings;
  std::string data_set;  // of a task that may learn from several; "" of others, and unknown

  std::string metric;
  bool higher_is_better = true;
  std::optional<double> target;
  std::string target_origin;  // "measured", "found", "recalled", "given"; "" without one
  std::optional<double> baseline;

  bool complete = false;          // the run ended by itself
  bool reached = false;           // the target; of a run in steps mode, false
  std::optional<double> quality;  // the last
  std::vector<Figure> figures;    // other ones at the end; none for most tasks
  int64_t steps = 0;
  double started = 0;             // seconds since 1970
  double seconds = 0;             // from before data are first touched
  double setup_seconds = 0;       // of these, before the first step: reading data, making the model
  double evaluation_seconds = 0;  // of these
  std::optional<double> energy_j;
  std::string why_no_energy;
  int64_t skipped_steps = 0;         // because gradients overflowed
  std::optional<double> loss_scale;  // at the end, if there was one
  std::optional<double> underflow;   // share of gradients' values that float16 would lose, the mean
  std::optional<int64_t> peak_bytes;
  std::vector<QualityPoint> curve;
  std::vector<double> step_seconds;  // of timed steps, in steps mode
  std::optional<double>
      noise;  // of the machine, by equal work: the ninth tenth over the first, minus 1
  // How many cores other programs used while it ran, the mean; of the last part of a run that was
  // taken up again.
  std::optional<double> others_cores;
  MachineFacts machine;
  std::string torch;

  double epochs() const;
  // Of the time that is neither evaluation nor set-up; nullopt before the first step.
  std::optional<double> samples_per_second() const;
};

// "image-classification"; "speech-recognition on spoken-digits".
std::string TaskText(const RunRecord& run);
// "image-classification, seed 1: reached …": a line for people.
std::string ToText(const RunRecord& run);
nlohmann::ordered_json ToJson(const RunRecord& run);
// Not a number of none.
double Median(std::vector<double> values);

// kIo if it cannot be opened, kBadInput if it is none.
Result<RunRecord> ReadRunRecord(const std::string& path, const RunContext& context);
Result<RunRecord> ParseRunRecord(const std::string& path, std::string_view text,
                                 const RunContext& context);

}  // namespace etude::suite
