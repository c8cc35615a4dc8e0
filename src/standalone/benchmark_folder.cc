#include "src/standalone/benchmark_folder.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "src/formats/atomic_file.h"
#include "src/standalone/program_data.h"
#include "src/standalone/program_text.h"
#include "src/standalone/runtime_files.h"

namespace etude {
namespace {

std::string Milliseconds(std::optional<Nanos> time) {
  return time ? fmt::format("{:.3f} ms", static_cast<double>(time->count) / 1e6) : "unknown";
}

// How far `time` is from the original's.
std::string Deviation(std::optional<Nanos> original, Nanos time) {
  if (!original || original->count <= 0) return "unknown";
  return fmt::format(
      "{:+.1f} %",
      100.0 * (static_cast<double>(time.count) / static_cast<double>(original->count) - 1.0));
}

std::string Readme(const Program& program, const BenchmarkFacts& facts, uint32_t calls_in_text) {
  std::set<std::string_view> names;
  for (const ProgramOperator& op : program.operators) names.insert(op.name);
  int64_t bytes = 0;
  for (const ProgramMemory& memory : program.memory) bytes += memory.bytes;
  std::string text = fmt::format(
      R"(# A benchmark of one step of a PyTorch program

It runs the operators of a step that was recorded, with arguments of the same shapes and types, on tensors
that live as long as they did: {} calls of {} different operators, {:.1f} MiB that are there before the step.
It needs PyTorch and nothing else.

In C++, with any libtorch, a downloaded one or that of a Python:

    cmake -S . -B build -DTORCH=$(python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
    cmake --build build
    build/benchmark

In Python:

    python benchmark.py

Both take `--iterations`, `--warmup`, `--threads`, `--device`, `--seed` and `--json`. Python itself takes time
between operators; where operators are small, the C++ program is the one that tells what the operators cost.

## What it stands for

| | CPU time | wall time |
|---|---|---|
| step of the original program | {} | {} |
| the same operators, replayed when this was made | {} | {} |
| deviation | {} | {} |

Made with torch {} on {}, {} thread{}. The original's time includes what the program did between operators,
which is not part of the benchmark.

Operators of the recorded step: {}, of which {} are run here{}.
)",
      program.calls.size(), names.size(), static_cast<double>(bytes) / (1 << 20),
      Milliseconds(facts.original_cpu), Milliseconds(facts.original_wall),
      Milliseconds(facts.replay_cpu), Milliseconds(facts.replay_wall),
      Deviation(facts.original_cpu, facts.replay_cpu),
      Deviation(facts.original_wall, facts.replay_wall), facts.torch_version, facts.device,
      program.threads, program.threads == 1 ? "" : "s", facts.operators, facts.operators_run,
      facts.time_coverage ? fmt::format(", {:.1f} % of their time", 100 * *facts.time_coverage)
                          : "");
  for (const BenchmarkFacts::LeftOut& row : facts.left_out) {
    text += fmt::format("* not run: `{}`, {} ×: {}\n", row.op, row.count, row.reason);
  }
  text += fmt::format(R"(
## What it tells of the program

Nothing of its names, its data or its weights: memory is filled with random numbers, indices within the
recorded bounds. What it does tell: which operators run in which order, the shapes and types of all tensors, and
so the architecture and the sizes of its layers, of batches and vocabularies; numbers among operators' arguments (scales,
probabilities, learning rates); how indices are distributed, as an exponent.

## Files

* `step.cc`, `step.py`: the step, {} calls in the text; repeated parts are loops.
* `step.data`: the forms of tensors, the memory that is there before the step, and numbers of slots that
  follow no formula.
* `benchmark.h`, `main.cc`, `CMakeLists.txt`; `benchmark.py`, `runtime.py`: what runs and times it.
)",
                      calls_in_text);
  return text;
}

}  // namespace

Status WriteBenchmark(const Program& program, const BenchmarkFacts& facts,
                      const std::string& folder) {
  for (const RuntimeFile& file : RuntimeFiles()) {
    ETUDE_RETURN_IF_ERROR(WriteFile(folder + "/" + std::string(file.name), file.text));
  }
  const StepText cpp = CppStep(program);
  ETUDE_RETURN_IF_ERROR(WriteFile(folder + "/step.cc", cpp.text));
  ETUDE_RETURN_IF_ERROR(WriteFile(folder + "/step.py", PythonStep(program).text));
  ETUDE_RETURN_IF_ERROR(WriteFile(folder + "/step.data", ProgramData(program, cpp.tables)));
  return WriteFile(folder + "/README.md", Readme(program, facts, cpp.calls));
}

}  // namespace etude
