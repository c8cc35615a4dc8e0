#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/standalone/program.h"

namespace etude {

// What a benchmark stands for and how well, as its README says it. Names of the program are not
// among it.
struct BenchmarkFacts {
  int64_t operators = 0;  // of the recorded step, and those that the benchmark runs
  int64_t operators_run = 0;
  std::optional<double> time_coverage;
  struct LeftOut {
    std::string op;
    std::string reason;
    int64_t count = 0;
  };
  std::vector<LeftOut> left_out;
  std::optional<Nanos> original_wall;  // of a step without recording, median
  std::optional<Nanos> original_cpu;
  Nanos replay_wall;  // of Etude's replay of the same operators, when the benchmark was made
  Nanos replay_cpu;
  std::string torch_version;
  std::string device;
};

// Writes the benchmark into `folder`, which must be there: a C++ project, a Python program, their
// data and a README. Files of these names are replaced.
Status WriteBenchmark(const Program& program, const BenchmarkFacts& facts,
                      const std::string& folder);

}  // namespace etude
