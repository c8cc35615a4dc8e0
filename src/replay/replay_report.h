#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/analysis/comm/comm_model.h"
#include "src/analysis/compare/replay_match.h"
#include "src/analysis/health.h"
#include "src/base/units.h"
#include "src/compose/composition.h"
#include "src/report/tables/step_times.h"
#include "src/trace/stats.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {

// Operators that were not run, of one kind.
struct SkippedOperators {
  std::string op;  // full name
  std::string schema;
  std::string reason;  // the first one of those that differ in numbers only
  int64_t count = 0;
  std::optional<double> time_share;  // of the recorded time of all top-level operators
  // Of a step's gaps: recorded time that passes in the place of these; 0: none does.
  Nanos stand_in;
  bool stand_in_asked = false;  // by --stand-in
};

// The share of the time up to which skipped operators that do not communicate make no replay
// incomplete: they would print as 0.0 %.
inline constexpr double kNegligibleShare = 0.0005;

// From this share on the wall times of a replay say nothing, and its CPU times little.
inline constexpr double kStolenShareMax = 0.05;

// Whether all operators ran, but for those that are negligible together or for which time stands in
// because it was asked for.
bool IsComplete(const std::vector<SkippedOperators>& skipped);

// What skipped operators are put together by: the name, and the reason but for its numbers, which
// differ from call to call. Digits of names ("conv2d") are no numbers.
std::pair<std::string, std::string> SkippedKey(std::string_view op, std::string_view reason);

struct NamedCount {
  std::string name;
  int64_t count = 0;
};

// What one of several ranks replayed together did.
struct RankSummary {
  int64_t rank = 0;
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  bool complete = true;  // IsComplete
  std::optional<double> time_coverage;
  StepTimes replay;
};

// The replay of one kind of recorded steps, or that it was not replayed: then only what it stands
// for is known.
struct KindSummary {
  bool replayed = true;
  int64_t step = 0;                  // the number of the one that was replayed
  int64_t steps = 0;                 // how many recorded steps are of this kind
  double step_share = 0;             // of the program's timed steps of all recorded kinds
  std::optional<double> time_share;  // of their time
  int64_t operators = 0;             // of one step
  int64_t operators_replayed = 0;
  std::optional<double> same_kernels;
  StepTimes replay;
};

// The part of a step that was asked for; empty members: all of it.
struct ReplayPart {
  std::string label;
  std::vector<std::string> only;
  std::vector<std::string> skip;

  bool is_whole() const { return label.empty() && only.empty() && skip.empty(); }
};

// What stood for ranks of the job that were not there.
struct EmulatedPeers {
  CommModel model;
  std::optional<CommFit> fit;  // nullopt: the model was given
  int64_t size = 1;            // ranks of the job
  int64_t present = 1;
};

// What a replay did and how long it took.
struct ReplayReport {
  std::string source;  // path of the trace or folder
  std::string job;     // of which it is a replay: JobFile::id; "" if that is unknown
  std::string device;
  std::string torch_version;
  std::vector<std::string> notes;      // what was unusual when it was recorded, in words
  std::vector<std::string> libraries;  // of operators, that were loaded: paths
  std::optional<int64_t> rank;
  int threads = 1;
  uint64_t seed = 0;
  int64_t warmup = 0;
  ReplayPart part;
  Health health;  // of the trace
  Stats stats;    // of reading and linking the trace

  // The recorded step, recording included, and the share of it in which topmost operators ran;
  // nullopt where the trace lacks times or the step's mark.
  std::optional<Nanos> recorded_step;
  std::optional<double> operator_share;
  // For how long operators of several threads, and device work of several streams, ran at the same
  // time in it, once for each thread or stream beyond the first: a replay does all one after the
  // other. nullopt where the trace lacks times.
  std::optional<Nanos> thread_overlap;
  std::optional<Nanos> stream_overlap;

  // Coverage, over the recorded step's top-level operators and its compiled code.
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  std::optional<double> time_coverage;
  // The time of what devices did in the recorded step, and the share of it that operators which ran
  // had launched; nullopt where no device's work was recorded.
  std::optional<Nanos> device_time;
  std::optional<double> device_coverage;
  std::vector<SkippedOperators> skipped;
  std::vector<NamedCount> untimed;  // topmost, of unknown recorded time, where others' is known

  // Fidelity. Calls that the replay makes; what a recording of it shows, if there is one.
  int64_t calls = 0;
  std::optional<KernelMatch> kernels;         // nullopt: the replay was not recorded
  std::vector<OperatorTime> operator_times;   // the longest first; empty: not recorded
  std::vector<NamedCount> replaced_by_parts;  // run as the operators they consist of
  int64_t coerced = 0;         // operators whose results are resized to the recorded shape and type
  int64_t assumed_values = 0;  // arguments that are not in the trace: defaults
  int64_t non_finite = 0;      // tensors that hold infinities or NaN after the last step
  int64_t denormal = 0;

  // What came before the warm-up, in CPU time; none is part of another.
  Nanos setup;       // finding operators, planning
  Nanos trial;       // trying the step out
  Nanos fill;        // making and filling memory
  Nanos first_step;  // the first run of the step
  int64_t outside_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t copied_bytes = 0;  // of what a step changes, to set it back
  // What the process had in use before its first step, copies not counted.
  std::optional<Bytes> resident_before_steps;
  // What timed steps added to that at the peak, and what those of the program did; the latter only
  // of a whole step.
  std::optional<Bytes> memory_growth;
  std::optional<Bytes> recorded_memory_growth;
  std::optional<double> minor_faults;  // per step, median
  // The share of the timed steps' wall time for which other work had this thread's processor.
  std::optional<double> stolen_share;
  // Per step of the program, median; only where the replay follows it.
  std::optional<int64_t> recorded_faults;
  int64_t given_back_bytes = 0;  // of what each step frees, to have as many page faults

  // Of a recorded step, the mean; nullopt of a part of one. Rates are this over wall time.
  std::optional<Work> work;

  // What a composed trace consists of, and expects of its operators; nullopt of all others, and of
  // a part of a step.
  std::optional<Composition> composition;

  StepTimes replay;    // as measured, with gaps or without them
  StepTimes original;  // as job.json has it

  // Time of the recorded step in which no operator of it ran, shortened by `gap_scale`; nullopt
  // where the trace lacks times. Whether it passed in the replayed steps, and their times with it
  // and without it, of which one is `replay`.
  bool gaps_passed = false;
  std::optional<Nanos> gaps;
  Nanos gap_idle;   // of these, the program waited
  Nanos gap_waits;  // for collectives, besides these, as much shortened
  double gap_scale = 1.0;
  StepTimes without_gaps;
  StepTimes with_gaps;

  bool per_operator = false;       // whether `operator_times` is asked for
  std::vector<KindSummary> kinds;  // of recorded steps, the most time first; empty: not looked for
  std::vector<RankSummary> ranks;  // all that were replayed together, by rank; empty: one alone
  std::optional<EmulatedPeers> peers;
  std::string scale;     // what was emulated of another machine, in words; "": nothing
  double slowdown = 1;   // how many times slower the steps ran for that
  int64_t emulated = 0;  // communications with ranks that were not there

  double coverage() const { return Coverage(operators_replayed, operators); }
  static double Coverage(int64_t replayed, int64_t total) {
    return total == 0 ? 1.0 : static_cast<double>(replayed) / static_cast<double>(total);
  }
};

// Versioned JSON, see docs/commands/replay.md.
std::string ReplayReportJson(const ReplayReport& report);
// A table for people.
std::string ReplayReportText(const ReplayReport& report);
// The part of it that says what was skipped; "" if nothing was.
std::string SkippedText(const ReplayReport& report);

}  // namespace etude
