#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"

namespace etude {

// The file that says what a capture's folder holds, and its format (python/etude/recording has
// both, too).
inline constexpr std::string_view kJobFile = "job.json";
inline constexpr std::string_view kJobFormat = "etude-job";

// Time of one step: elapsed, and what the process's threads together spent on processors.
struct StepTime {
  std::string signature;  // id of the step's signature
  Nanos wall;             // of a device where one works: the host runs ahead of it
  Nanos cpu;
  std::optional<Nanos> host;                  // then, what elapsed on the host
  std::optional<int64_t> minor_faults;        // pages given without reading a disk
  std::optional<int64_t> voluntary_switches;  // how often a thread waited
  // For how long the thread of the step could have run while other work had its processor.
  std::optional<Nanos> stolen;
};

// What tells steps of a program apart.
struct StepSignature {
  std::string id;
  std::string description;
  uint64_t seen = 0;   // steps of this signature
  uint64_t timed = 0;  // of these, timed without instrumentation
  bool recorded = false;
};

// One rank of a recorded job.
struct JobRank {
  std::string step_kind;  // what marked the steps: "optimizer", "module", "profiler"
  std::vector<StepSignature> signatures;
  std::vector<StepTime> timed_steps;
  std::string recorded_signature;                // "" if the file does not say
  std::optional<StepTime> recorded;              // the step in the trace, slowed down by recording
  std::vector<std::string> recorded_signatures;  // of each step in the trace; empty if unknown
  bool recorded_early = false;            // in the warm-up: the program ended before a warm one was
  std::optional<int64_t> threads;         // of PyTorch's intra-op pool
  std::optional<int64_t> mmap_threshold;  // bytes from which on glibc maps blocks
  // What the steps added to the memory in use before the first one, at the peak.
  std::optional<Bytes> memory_growth;
  bool compiled_kernels = false;  // a compiler's, which are no operators, may have run
  std::vector<std::string> notes;

  // Timed steps of the recorded signature: what a replay is compared with. All timed steps where
  // none of these was timed.
  std::vector<StepTime> ComparableSteps() const;
  // Those of all recorded signatures; all timed steps where the file does not say which these are,
  // or none of them was timed.
  std::vector<StepTime> StepsOfRecordedKinds() const;
  // For how many timed steps each step in the trace stands: those of its signature, shared among
  // the recorded steps of that. Empty if unknown.
  std::vector<double> StepWeights() const;
};

// job.json of a capture folder; docs/formats/capture.md describes it.
struct JobFile {
  std::string id;  // the same for all ranks of one run; "" if the file does not say
  std::vector<std::string> command;
  std::string mark;  // of the user who recorded it (python/etude/recording/marks.py); "": none
  std::optional<int64_t> world_size;
  std::map<int64_t, JobRank> ranks;
};

// Reads job.json. kIo if it cannot be opened, kBadInput if it is not one.
Result<JobFile> ReadJobFile(const std::string& path, const RunContext& context);
// The same from its text; `path` appears in messages.
Result<JobFile> ParseJobFile(const std::string& path, std::string_view text,
                             const RunContext& context);

}  // namespace etude
