#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/health.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/standalone/program.h"

namespace etude {

// A step as the files of a benchmark have it, and what its README says of it.
struct StepSource {
  std::string cpp;
  std::string python;
  std::string data;
  std::string gaps;                  // "" where they are unknown
  std::vector<ProgramGroup> groups;  // in the order in which the step numbers them
  int64_t calls = 0;
  int64_t calls_in_text = 0;
  int64_t operators = 0;  // different ones
  int64_t bytes = 0;      // there before the step
  int64_t threads = 1;
  int64_t left_out = 0;  // operators of the recorded step
  bool complete = true;  // but for a negligible part
  // Of libraries, not of PyTorch, by their names, which the code has to call them.
  std::vector<std::string> library_operators;
};
StepSource SourceOf(const Program& program);
// The same as bytes, for another process. kInternal if these are not such bytes.
std::string ToBytes(const StepSource& source);
Result<StepSource> StepSourceOf(std::string_view bytes);

// What a benchmark stands for and how well, as its README says it: of a job the first rank. The
// README has names of the program's only with `keep_names`.
struct BenchmarkFacts {
  int64_t operators = 0;  // of the recorded step, and those that the benchmark runs
  int64_t operators_run = 0;
  std::optional<double> time_coverage;
  struct LeftOut {
    std::string op;
    std::string reason;
    int64_t count = 0;
    std::optional<double> time_share;  // of the recorded time of all operators
    Nanos stand_in;                    // of a step's gaps: time that passes in their place
  };
  std::vector<LeftOut> left_out;
  // Medians of a step; nullopt: unknown.
  struct Figures {
    std::optional<Nanos> cpu;
    std::optional<Nanos> wall;
  };
  Figures original;  // without recording
  // Of Etude's replay of the same operators, when the benchmark was made: with the time that passed
  // in the original between operators, and without it.
  Figures with_gaps;
  Figures without_gaps;
  // Page faults of a step of the original and of the replay, medians; of tensors at the peak.
  std::optional<double> original_faults;
  std::optional<double> replay_faults;
  Bytes peak;
  // What steps add to the process's memory, at the peak.
  std::optional<Bytes> original_growth;
  std::optional<Bytes> replay_growth;
  std::string torch_version;
  std::string device;
  Health health;  // of the trace
  bool keep_names = false;
};

// kBadInput if the folder has files of a benchmark's names that are not those of one.
Status CheckBenchmarkFolder(const std::string& folder);

// Writes the benchmark of a job, whose `ranks` are all there, in order, into `folder`, which must
// be there: a C++ project, a Python program, their data and a README. Files of these names are
// replaced; those of another benchmark that was there are removed. Ranks that do the same share
// their step.
Status WriteBenchmark(std::span<const StepSource> ranks, const BenchmarkFacts& facts,
                      const std::string& folder);

}  // namespace etude
