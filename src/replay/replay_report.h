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

// Skipped operators of one kind.
struct SkippedOperators {
  std::string op;  // full name
  std::string schema;
  std::string reason;  // the first one of those that differ in numbers only
  int64_t count = 0;
  std::optional<double> time_share;  // share of the recorded time of all top-level operators
  // Recorded time that passes instead, as part of a step's gaps; 0: none.
  Nanos stand_in;
  bool stand_in_asked = false;  // requested by --stand-in
};

// Maximum time share of skipped operators without communication in a complete replay; prints as 0.0
// %.
inline constexpr double kNegligibleShare = 0.0005;

// Maximum stolen share for meaningful wall times; above it, CPU times are unreliable, too.
inline constexpr double kStolenShareMax = 0.05;

// Returns whether all operators ran, except negligible ones (together) and those replaced by time
// on request.
bool IsComplete(const std::vector<SkippedOperators>& skipped);

// Returns the key by which skipped operators are grouped: the name, and the reason without numbers
// that differ between calls. Digits in names ("conv2d") are kept.
std::pair<std::string, std::string> SkippedKey(std::string_view op, std::string_view reason);

struct NamedCount {
  std::string name;
  int64_t count = 0;
};

// Result of one of several ranks that were replayed together.
struct RankSummary {
  int64_t rank = 0;
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  bool complete = true;  // IsComplete
  std::optional<double> time_coverage;
  StepTimes replay;
};

// Result of one kind of recorded steps. If the kind was not replayed, only its shares are known.
struct KindSummary {
  bool replayed = true;
  int64_t step = 0;                  // number of the replayed step
  int64_t steps = 0;                 // recorded steps of this kind
  double step_share = 0;             // share of the program's timed steps of all recorded kinds
  std::optional<double> time_share;  // share of their time
  int64_t operators = 0;             // per step
  int64_t operators_replayed = 0;
  std::optional<double> same_kernels;
  StepTimes replay;
};

// The replayed part of a step; empty members: all of it.
struct ReplayPart {
  std::string label;
  std::vector<std::string> only;
  std::vector<std::string> skip;

  bool is_whole() const { return label.empty() && only.empty() && skip.empty(); }
};

// Emulation of ranks that do not take part.
struct EmulatedPeers {
  CommModel model;
  std::optional<CommFit> fit;  // nullopt: the model was given by the user
  int64_t size = 1;            // ranks of the job
  int64_t present = 1;
};

// Configuration and result of a replay.
struct ReplayReport {
  std::string source;  // path of the trace or folder
  std::string job;     // JobFile::id of the replayed job; "" if unknown
  std::string device;
  std::string torch_version;
  std::vector<std::string> notes;      // anomalies of the recording, as text
  std::vector<std::string> libraries;  // paths of the operator libraries loaded
  std::optional<int64_t> rank;
  int threads = 1;
  uint64_t seed = 0;
  int64_t warmup = 0;
  ReplayPart part;
  Health health;  // of the trace
  Stats stats;    // of reading and linking the trace

  // Duration of the recorded step including recording overhead, and the share in which topmost
  // operators ran. nullopt if the trace lacks times or the step's mark.
  std::optional<Nanos> recorded_step;
  std::optional<double> operator_share;
  // Time of overlap in the recorded step, of operators on several threads and of device work on
  // several streams, counted once per additional thread or stream. A replay serializes both.
  // nullopt if the trace lacks times.
  std::optional<Nanos> thread_overlap;
  std::optional<Nanos> stream_overlap;

  // Coverage, over the recorded step's top-level operators and its compiled code.
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  std::optional<double> time_coverage;
  // Device time of the recorded step, and the share launched by operators that ran. nullopt if no
  // device work was recorded.
  std::optional<Nanos> device_time;
  std::optional<double> device_coverage;
  std::vector<SkippedOperators> skipped;
  std::vector<NamedCount> untimed;  // topmost operators without a recorded time, if others have one

  // Fidelity: calls of the replay, and comparison with a recording of it, if there is one.
  int64_t calls = 0;
  std::optional<KernelMatch> kernels;         // nullopt: the replay was not recorded
  std::vector<OperatorTime> operator_times;   // descending; empty: not recorded
  std::vector<NamedCount> replaced_by_parts;  // replaced by the operators that they called
  int64_t coerced = 0;         // operators whose results are resized to the recorded shape and type
  int64_t assumed_values = 0;  // arguments missing from the trace, replaced by defaults
  int64_t non_finite = 0;      // tensors with infinities or NaN after the last step
  int64_t denormal = 0;

  // CPU times before the warm-up; they do not overlap.
  Nanos setup;       // operator lookup, planning
  Nanos trial;       // trying out the step
  Nanos fill;        // allocating and filling memory
  Nanos first_step;  // the first run of the step
  int64_t outside_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t copied_bytes = 0;  // copies for restoring what a step changes
  // Process memory before its first step, excluding copies.
  std::optional<Bytes> resident_before_steps;
  // Peak memory added by the timed steps, and by those of the program; the latter for a whole step
  // only.
  std::optional<Bytes> memory_growth;
  std::optional<Bytes> recorded_memory_growth;
  std::optional<double> minor_faults;  // per step, median
  // Share of the timed steps' wall time in which other work used this thread's processor.
  std::optional<double> stolen_share;
  // Page faults per step of the program, median; set if the replay reproduces them.
  std::optional<int64_t> recorded_faults;
  int64_t given_back_bytes =
      0;  // bytes returned to the system per step, to reproduce the page faults

  // Mean work of a recorded step; nullopt for a part of a step. Rates are work / wall time.
  std::optional<Work> work;

  // Composition and expectations of a composed trace; nullopt for other traces, and for a part of a
  // step.
  std::optional<Composition> composition;

  StepTimes replay;    // as measured, with or without gaps
  StepTimes original;  // from job.json

  // Time of the recorded step without a running operator, scaled by `gap_scale`; nullopt if the
  // trace lacks times. `gaps_passed`: whether it passed in the replayed steps. Step times with and
  // without gaps; one of them equals `replay`.
  bool gaps_passed = false;
  std::optional<Nanos> gaps;
  Nanos gap_idle;   // part of `gaps` in which the program waited
  Nanos gap_waits;  // waits for collectives, in addition to `gaps`, scaled equally
  double gap_scale = 1.0;
  StepTimes without_gaps;
  StepTimes with_gaps;

  bool per_operator = false;       // `operator_times` was requested
  std::vector<KindSummary> kinds;  // of recorded steps, by time, descending; empty: not requested
  std::vector<RankSummary> ranks;  // all ranks that were replayed together; empty: a single rank
  std::optional<EmulatedPeers> peers;
  std::string scale;     // description of the emulated machine; "": none
  double slowdown = 1;   // slowdown factor of the steps for the emulation
  int64_t emulated = 0;  // communications with emulated ranks

  double coverage() const { return Coverage(operators_replayed, operators); }
  static double Coverage(int64_t replayed, int64_t total) {
    return total == 0 ? 1.0 : static_cast<double>(replayed) / static_cast<double>(total);
  }
};

// Returns versioned JSON, see docs/commands/replay.md.
std::string ReplayReportJson(const ReplayReport& report);
// Returns a table for readers.
std::string ReplayReportText(const ReplayReport& report);
// Returns the part of it on skipped operators; "" if there are none.
std::string SkippedText(const ReplayReport& report);

}  // namespace etude
