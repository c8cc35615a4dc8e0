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

// File that describes the contents of a capture folder, and its format (also in
// python/etude/recording).
inline constexpr std::string_view kJobFile = "job.json";
inline constexpr std::string_view kJobFormat = "etude-job";

// Time of one step: elapsed time, and CPU time over all threads of the process.
struct StepTime {
  std::string signature;  // id of the step's signature
  Nanos wall;             // on the device if one works: the host runs ahead of it
  Nanos cpu;
  std::optional<Nanos> host;                  // elapsed on the host, if a device works
  std::optional<int64_t> minor_faults;        // page faults that read no disk
  std::optional<int64_t> voluntary_switches;  // number of waits of threads
  // Time in which the step's thread was runnable while other work had its processor.
  std::optional<Nanos> stolen;
};

// Kind of steps of a program.
struct StepSignature {
  std::string id;
  std::string description;
  uint64_t seen = 0;   // steps of this signature
  uint64_t timed = 0;  // of these, timed without instrumentation
  bool recorded = false;
};

// One rank of a recorded job.
struct JobRank {
  std::string step_kind;  // origin of the step marks: "optimizer", "module", "profiler"
  std::vector<StepSignature> signatures;
  std::vector<StepTime> timed_steps;
  std::string recorded_signature;                // "" if missing
  std::optional<StepTime> recorded;              // the step in the trace, slowed down by recording
  std::vector<std::string> recorded_signatures;  // of each step in the trace; empty if unknown
  bool recorded_early = false;            // in the warm-up: the program ended before a warm step
  std::optional<int64_t> threads;         // of PyTorch's intra-op pool
  std::optional<int64_t> mmap_threshold;  // min size of blocks that glibc maps, in bytes
  // Growth of the memory in use at the peak of the steps, relative to before the first step.
  std::optional<Bytes> memory_growth;
  bool compiled_kernels = false;  // kernels made by a compiler, which are not operators, may have
                                  // run
  std::vector<std::string> notes;

  // Returns the timed steps of the recorded signature, to compare a replay with. Returns all timed
  // steps if none has it.
  std::vector<StepTime> ComparableSteps() const;
  // Returns the timed steps of all recorded signatures; all timed steps if the signatures are
  // unknown, or if none was timed.
  std::vector<StepTime> StepsOfRecordedKinds() const;
  // Returns the number of timed steps that each step in the trace represents: those of its
  // signature, divided among the recorded steps of that signature. Empty if unknown.
  std::vector<double> StepWeights() const;
};

// job.json of a capture folder; docs/formats/capture.md describes it.
struct JobFile {
  std::string id;  // the same for all ranks of one run; "" if missing
  std::vector<std::string> command;
  std::string mark;  // identifies the recording user (python/etude/recording/marks.py); "": none
  std::optional<int64_t> world_size;
  std::string torch;                    // version of PyTorch: "2.13.0+cpu"; "" if missing
  std::string processor;                // model: "AMD EPYC 7R13"; "" if missing
  std::optional<int64_t> usable_cores;  // by a rank
  std::map<int64_t, JobRank> ranks;
};

// Reads job.json. kIo if it cannot be opened, kBadInput if it is invalid.
Result<JobFile> ReadJobFile(const std::string& path, const RunContext& context);
// Parses the text of a job.json; `path` is used in messages.
Result<JobFile> ParseJobFile(const std::string& path, std::string_view text,
                             const RunContext& context);

}  // namespace etude
