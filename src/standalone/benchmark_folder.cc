#include "src/standalone/benchmark_folder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/text/format_count.h"
#include "src/base/text/printable.h"
#include "src/formats/io/file_set.h"
#include "src/standalone/program_data.h"
#include "src/standalone/program_text.h"
#include "src/standalone/runtime_files.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

std::string Milliseconds(std::optional<Nanos> time) {
  return time ? fmt::format("{:.3f} ms", static_cast<double>(time->count) / 1e6) : "unknown";
}

std::string CountText(int64_t count, std::string_view one) {
  return FormatCount(static_cast<uint64_t>(count), one);
}

// Returns the name suffix of step `number`; empty for a single rank.
std::string Number(size_t ranks, size_t number) {
  return ranks == 1 ? "" : fmt::format("_{}", number);
}

std::string FaultText(const std::optional<double>& faults) {
  return faults ? FormatCount(static_cast<uint64_t>(std::llround(*faults))) : "unknown";
}

// Returns the deviation of a figure from the original's.
std::string Deviation(std::optional<double> original, std::optional<double> figure) {
  if (!original || !figure) return "unknown";
  if (*original <= 0) return *figure <= 0 ? "+0.0 %" : "unknown";
  return fmt::format("{:+.1f} %", 100.0 * (*figure / *original - 1.0));
}

std::optional<double> Number(const std::optional<Nanos>& time) {
  return time ? std::optional(static_cast<double>(time->count)) : std::nullopt;
}

std::optional<double> Number(const std::optional<Bytes>& bytes) {
  return bytes ? std::optional(static_cast<double>(bytes->count)) : std::nullopt;
}

std::string Mebibytes(const std::optional<Bytes>& bytes) {
  return bytes ? fmt::format("{:.1f} MiB", static_cast<double>(bytes->count) / (1 << 20))
               : "unknown";
}

// Returns text from a trace as a line of Markdown.
std::string LineOf(std::string_view text) {
  std::string line;
  for (const char c : Printable(text)) {
    if (c == '<') {
      line += "&lt;";
    } else {
      line += c == '`' ? '\'' : c;
    }
  }
  return line;
}

// Returns two rows of the README's table.
std::string FigureRows(std::string_view what, const BenchmarkFacts::Figures& original,
                       const BenchmarkFacts::Figures& figures) {
  return fmt::format("| {} | {} | {} |\n| deviation | {} | {} |\n", what, Milliseconds(figures.cpu),
                     Milliseconds(figures.wall),
                     Deviation(Number(original.cpu), Number(figures.cpu)),
                     Deviation(Number(original.wall), Number(figures.wall)));
}

// Ranks of a job: the process groups, the distinct codes and data, and which of them each rank has.
struct Ranks {
  std::vector<ProgramGroup> groups;
  std::vector<const StepSource*> codes;
  std::vector<const StepSource*> data;
  std::vector<size_t> code_of;
  std::vector<size_t> data_of;
};

Ranks Sort(std::span<const StepSource> sources) {
  Ranks ranks;
  std::set<ProgramGroup> groups;
  std::map<std::pair<std::string_view, std::string_view>, size_t> codes;
  std::map<std::string_view, size_t> data;
  for (const StepSource& source : sources) {
    groups.insert(source.groups.begin(), source.groups.end());
    const auto [code, new_code] =
        codes.emplace(std::pair<std::string_view, std::string_view>(source.cpp, source.python),
                      ranks.codes.size());
    if (new_code) ranks.codes.push_back(&source);
    ranks.code_of.push_back(code->second);
    const auto [numbers, new_data] = data.emplace(source.data, ranks.data.size());
    if (new_data) ranks.data.push_back(&source);
    ranks.data_of.push_back(numbers->second);
  }
  ranks.groups.assign(groups.begin(), groups.end());
  return ranks;
}

// Returns the file ranks.data: docs/formats/benchmark_data.md.
std::string RanksData(std::span<const StepSource> sources, const Ranks& ranks) {
  std::string text = fmt::format("ranks 1\ngroups {}\n", ranks.groups.size());
  for (const ProgramGroup& group : ranks.groups) {
    text += fmt::format("{} {}\n", group.ranks.size(), fmt::join(group.ranks, " "));
  }
  text += fmt::format("members {}\n", sources.size());
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    text += fmt::format("{} {} {}", ranks.code_of[rank], ranks.data_of[rank],
                        sources[rank].groups.size());
    for (const ProgramGroup& group : sources[rank].groups) {
      text +=
          fmt::format(" {}", std::ranges::lower_bound(ranks.groups, group) - ranks.groups.begin());
    }
    text += '\n';
  }
  return text;
}

// Returns `text` without its quoted parts: names of process groups, kernels and types.
std::string WithoutQuoted(std::string_view text) {
  std::string shown;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '\'') {
      shown += is_quoted ? "…'" : "'";
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      shown += c;
    }
  }
  return is_quoted ? shown + "…" : shown;
}

// Returns a row of the operators that do not run, with names removed unless `keep_names` is set.
BenchmarkFacts::LeftOut Told(const BenchmarkFacts::LeftOut& row, bool keep_names) {
  // Compiled kernels, and their files, are named by the program.
  const bool is_operator = row.op.find("::") != std::string::npos;
  if (keep_names) return row;
  BenchmarkFacts::LeftOut told = row;
  if (!is_operator) {
    told.op = "no operator";
    told.reason = "work of compiled code";
  } else if (IsOfPyTorch(row.op)) {
    told.reason = WithoutQuoted(row.reason);
  } else {
    told.op = "operators of libraries";
    told.reason = "use --keep-names for names and reasons";
  }
  return told;
}

// Returns the rows with duplicates merged.
std::vector<BenchmarkFacts::LeftOut> LeftOutRows(const BenchmarkFacts& facts) {
  std::vector<BenchmarkFacts::LeftOut> rows;
  for (const BenchmarkFacts::LeftOut& one : facts.left_out) {
    const BenchmarkFacts::LeftOut told = Told(one, facts.keep_names);
    const auto same = std::ranges::find_if(rows, [&](const BenchmarkFacts::LeftOut& row) {
      return row.op == told.op && row.reason == told.reason;
    });
    if (same == rows.end()) {
      rows.push_back(told);
    } else {
      same->count += told.count;
      same->stand_in = same->stand_in + told.stand_in;
      same->time_share = same->time_share && told.time_share
                             ? std::optional(*same->time_share + *told.time_share)
                             : std::nullopt;
    }
  }
  return rows;
}

// Returns the verdict on the trace, unless it is good.
std::string HealthText(const Health& health, bool keep_names) {
  if (health.verdict() == Verdict::kGood) return "";
  std::string text =
      fmt::format("\nVerdict on the recorded trace: \"{}\"\n\n", Name(health.verdict()));
  for (const Health::Reason& reason : health.reasons) {
    // Details of other reasons name threads, whose names may come from the program.
    const bool is_graph = reason.name == "graph_time" && health.graph_time;
    text += fmt::format("* {}: {}\n", Name(reason.verdict),
                        is_graph
                            ? fmt::format("the time from its dependency graph differs by {:+.1f} %",
                                          100 * health.graph_time->error())
                        : keep_names ? reason.text
                                     : WithoutQuoted(reason.text));
  }
  return text;
}

// Describes the program's names in the benchmark; "" if there are none.
std::string NamesText(std::span<const StepSource> ranks, bool keep_names) {
  std::string text;
  if (keep_names) {
    text +=
        "It contains names of modules (as comments), string arguments of operators, and names of "
        "skipped\noperators with the reasons.\n";
  }
  std::set<std::string> names;
  for (const StepSource& rank : ranks) {
    names.insert(rank.library_operators.begin(), rank.library_operators.end());
  }
  if (!names.empty()) {
    text += fmt::format("It contains the names of library operators that the code calls: `{}`.\n",
                        fmt::join(names, "`, `"));
  }
  return text.empty() ? text : text + '\n';
}

// Describes how the original's time between operators is included.
std::string_view GapText(const StepSource& source) {
  return source.gaps.empty()
             ? "The gaps between operators of\nthe original program (Python, waits) are unknown "
               "and not part of the benchmark. The Python program has\nits own gaps."
             : "The benchmark reproduces the gaps\nbetween operators of the original program "
               "(Python, autograd engine, waits). `--gaps none` leaves them out, to\nmeasure the "
               "operators alone.";
}

std::string Readme(std::span<const StepSource> ranks, size_t steps, const BenchmarkFacts& facts) {
  const StepSource& source = ranks.front();
  const size_t size = ranks.size();
  std::string rows;
  if (!source.gaps.empty()) {
    rows += FigureRows("with gaps between operators", facts.original, facts.with_gaps);
  }
  rows += FigureRows(source.gaps.empty() ? "operators only" : "without gaps (`--gaps none`)",
                     facts.original, facts.without_gaps);
  std::string text = fmt::format(
      R"(# A benchmark of one step of a PyTorch program

It runs the operators of a recorded step with arguments of the same shapes and dtypes, on tensors with the
same lifetimes: {} of {}, with {:.1f} MiB of tensors that exist before the step.
It requires only PyTorch.{}

In C++, with any libtorch, downloaded or from a Python installation:

    cmake -S . -B build -DTORCH=$(python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
    cmake --build build
    {}build/benchmark

In Python:

    {}benchmark.py

Both take `--iterations`, `--warmup`, `--threads`, `--device`, `--seed`, `--library`, `--gaps` and `--json`. {}

## Comparison with the original

| | CPU time | wall time |
|---|---|---|
| step of the original program | {} | {} |
{}
Page faults per step: {} in the original, {} here ({}). Tensors take {:.1f} MiB at the peak.
Peak memory that steps add to the memory of the process: {} in the original, {} here ({}).

Generated with torch {} on {}, {}. The figures come from a replay of the same operators on the machine that generated the benchmark, not on this machine.
`etude compare CAPTURE --run --benchmark {}` compares the benchmark with the original program, including memory.

Operators of the recorded step: {}, of which {} run here{}.
)",
      CountText(source.calls, "call"), CountText(source.operators, "distinct operator"),
      static_cast<double>(source.bytes) / (1 << 20),
      size == 1 ? ""
                : fmt::format("\nThe figures are those of rank 0 of {} ranks; collectives, sends "
                              "and receives run between the processes of the ranks.{}",
                              size, steps == 1 ? " All ranks run the same step." : ""),
      size == 1 ? "" : fmt::format("torchrun --no-python --nproc-per-node={} ", size),
      size == 1 ? "python " : fmt::format("torchrun --nproc-per-node={} ", size), GapText(source),
      Milliseconds(facts.original.cpu), Milliseconds(facts.original.wall), rows,
      FaultText(facts.original_faults), FaultText(facts.replay_faults),
      Deviation(facts.original_faults, facts.replay_faults),
      static_cast<double>(facts.peak.count) / (1 << 20), Mebibytes(facts.original_growth),
      Mebibytes(facts.replay_growth),
      Deviation(Number(facts.original_growth), Number(facts.replay_growth)), facts.torch_version,
      facts.device, CountText(source.threads, "thread"), "benchmark.py", facts.operators,
      facts.operators_run,
      facts.time_coverage ? fmt::format(", {:.1f} % of their time", 100 * *facts.time_coverage)
                          : "");
  for (const BenchmarkFacts::LeftOut& row : LeftOutRows(facts)) {
    const bool is_name = row.op.find(' ') == std::string::npos;
    text += fmt::format(
        "* not run: {0}{1}{0}, {2} ×{3}: {4}{5}\n", is_name ? "`" : "", LineOf(row.op), row.count,
        row.time_share ? fmt::format(", {:.1f} % of the time", 100 * *row.time_share) : "",
        LineOf(row.reason),
        row.stand_in > Nanos{}
            ? fmt::format("; replaced by a wait of {} per step", Milliseconds(row.stand_in))
            : "");
  }
  for (size_t rank = 1; rank < size; ++rank) {
    if (ranks[rank].left_out == 0) continue;
    text += fmt::format("* not run on rank {}: {}\n", rank,
                        CountText(ranks[rank].left_out, "operator"));
  }
  text += HealthText(facts.health, facts.keep_names);
  text += fmt::format(
      R"(
## Information about the program

{}The benchmark does not contain the program's {}data or weights: tensors are filled with random numbers, and
indices are random within the recorded bounds. It does contain the operators and their order; the shapes and dtypes of
all tensors, which reveal the architecture and the sizes of layers, batches and vocabularies; numeric arguments of
operators (scales, probabilities, learning rates); and the distribution of indices, as an exponent{}.

## Files

* `step{}.cc`, `step{}.py`: {}, {} in the text; repeated parts are loops.
{}* `step{}.data`: the shapes and dtypes of tensors, the tensors that exist before the step, and tables of numbers that
  the code uses.
* `benchmark.h`, `main.cc`, `CMakeLists.txt`; `benchmark.py`, `runtime.py`: code that runs and times the step.
)",
      NamesText(ranks, facts.keep_names), facts.keep_names ? "" : "names, ",
      size == 1 ? "" : "; the number of ranks and their process groups", Number(size, 0),
      Number(size, 0), steps == 1 ? "the step" : "the step of rank 0",
      CountText(source.calls_in_text, "call"),
      source.gaps.empty()
          ? ""
          : fmt::format(
                "* `gaps{}.data`: the gap before each call, in nanoseconds: waiting, and busy.\n",
                Number(size, 0)),
      Number(size, 0));
  if (size == 1) {
    return text +
           "* `ranks.h`, `one_rank.cc`: stubs for communication, which one rank does not use.\n";
  }
  if (steps > 1) {
    text += fmt::format(
        "* {}: the steps of ranks that run other operators, or the same operators on other "
        "tensors.\n",
        steps == 2 ? "`step_1`" : fmt::format("`step_1` to `step_{}`", steps - 1));
  }
  return text +
         "* `ranks.data`: the process groups, and the step and data of each rank.\n* `ranks.h`, "
         "`ranks.cc`, `ranks.py`: communication between ranks; `gloo`: declarations missing in "
         "PyTorch's wheel.\n";
}

bool IsThere(const std::string& folder, std::string_view name) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(folder) / name, error);
}

bool IsBenchmark(const std::string& folder) {
  return IsThere(folder, "benchmark.h") && IsThere(folder, "benchmark.py");
}

// Returns whether the file in `folder` equals a benchmark's file exactly.
bool IsOurs(const std::string& folder, const RuntimeFile& file) {
  const std::filesystem::path path = std::filesystem::path(folder) / file.name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return stream && text == file.text;
}

// Returns whether `folder` contains a benchmark, or the remains of an interrupted one.
bool HasBenchmark(const std::string& folder) {
  return IsBenchmark(folder) || std::ranges::any_of(RuntimeFiles(), [&](const RuntimeFile& file) {
           return IsOurs(folder, file);
         });
}

// Removes files of an earlier benchmark that the new one does not replace.
Status RemoveOld(const std::string& folder, const std::set<std::string>& written) {
  std::error_code error;
  for (const RuntimeFile& file : RuntimeFiles()) {
    if (written.contains(std::string(file.name))) continue;
    std::filesystem::remove(folder + "/" + std::string(file.name), error);
    if (error) return MakeError(ErrorCode::kIo, folder + ": " + error.message());
  }
  std::filesystem::directory_iterator files(folder, error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename();
    const std::string ending = files->path().extension();
    const bool is_step = (name.starts_with("step_") || name.starts_with("step.")) &&
                         (ending == ".cc" || ending == ".py" || ending == ".data");
    std::error_code kept;
    const bool is_gaps = name.starts_with("gaps") && ending == ".data";
    const bool is_part = is_step || is_gaps || name == "ranks.data";
    if (is_part && !written.contains(name)) std::filesystem::remove(files->path(), kept);
    if (kept) return MakeError(ErrorCode::kIo, files->path().string() + ": " + kept.message());
  }
  return error ? MakeError(ErrorCode::kIo, folder + ": " + error.message()) : Status();
}

}  // namespace

StepSource SourceOf(const Program& program) {
  StepText cpp = CppStep(program);
  StepSource source{.python = PythonStep(program).text,
                    .data = ProgramData(program, cpp.tables),
                    .gaps = GapData(program),
                    .groups = program.groups,
                    .calls = static_cast<int64_t>(program.calls.size()),
                    .calls_in_text = cpp.calls,
                    .threads = program.threads};
  source.cpp = std::move(cpp.text);
  std::set<std::string_view> names;
  for (const ProgramOperator& op : program.operators) names.insert(op.name);
  source.operators = static_cast<int64_t>(names.size());
  for (const std::string_view name : names) {
    if (!IsOfPyTorch(name)) source.library_operators.emplace_back(name);
  }
  for (const ProgramMemory& memory : program.memory) source.bytes += memory.bytes;
  return source;
}

std::string ToBytes(const StepSource& source) {
  nlohmann::json groups = nlohmann::json::array();
  for (const ProgramGroup& group : source.groups) groups.push_back({group.name, group.ranks});
  const nlohmann::json json = {source.cpp,
                               source.python,
                               source.data,
                               groups,
                               source.calls,
                               source.calls_in_text,
                               source.operators,
                               source.bytes,
                               source.threads,
                               source.left_out,
                               source.library_operators,
                               source.gaps,
                               source.complete};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<StepSource> StepSourceOf(std::string_view bytes) {
  try {
    const nlohmann::json json = nlohmann::json::parse(bytes);
    StepSource source{.cpp = json.at(0),
                      .python = json.at(1),
                      .data = json.at(2),
                      .gaps = json.at(11),
                      .calls = json.at(4),
                      .calls_in_text = json.at(5),
                      .operators = json.at(6),
                      .bytes = json.at(7),
                      .threads = json.at(8),
                      .left_out = json.at(9),
                      .complete = json.at(12),
                      .library_operators = json.at(10)};
    for (const nlohmann::json& group : json.at(3)) {
      source.groups.push_back({.name = group.at(0), .ranks = group.at(1)});
    }
    return source;
  } catch (const nlohmann::json::exception& error) {
    return MakeError(ErrorCode::kInternal, std::string("the step of a rank: ") + error.what());
  }
}

Status CheckBenchmarkFolder(const std::string& folder) {
  if (IsBenchmark(folder)) return {};
  const auto refuse = [&](std::string_view name) {
    return BadInput(
        fmt::format("{}: found {}, which is not part of a benchmark, expected a new folder or an "
                    "earlier benchmark",
                    folder, name));
  };
  // An interrupted benchmark has some of the files, but not the last one.
  if (IsThere(folder, "README.md")) return refuse("README.md");
  for (const RuntimeFile& file : RuntimeFiles()) {
    if (IsThere(folder, file.name) && !IsOurs(folder, file)) return refuse(file.name);
  }
  return {};
}

Status WriteBenchmark(std::span<const StepSource> sources, const BenchmarkFacts& facts,
                      const std::string& folder) {
  using Use = RuntimeFile::Use;
  const size_t size = sources.size();
  const Ranks ranks = Sort(sources);
  const bool replaces = HasBenchmark(folder);
  FileSet files;
  std::set<std::string> written;
  const auto write = [&](const std::string& name, std::string_view text) {
    written.insert(name);
    return files.Add(folder + "/" + name, text);
  };
  for (const RuntimeFile& file : RuntimeFiles()) {
    if (file.use == (size > 1 ? Use::kOneRank : Use::kSeveralRanks)) continue;
    const std::string name(file.name);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path(),
                                        error);
    if (error) return MakeError(ErrorCode::kIo, folder + ": " + error.message());
    ETUDE_RETURN_IF_ERROR(write(name, file.text));
  }
  for (size_t i = 0; i < ranks.codes.size(); ++i) {
    const StepSource& step = *ranks.codes[i];
    const std::string name = "step" + Number(size, i);
    ETUDE_RETURN_IF_ERROR(
        write(name + ".cc", step.cpp + fmt::format("const StepCode code({}, Step);\n", i)));
    ETUDE_RETURN_IF_ERROR(write(name + ".py", step.python));
  }
  for (size_t i = 0; i < ranks.data.size(); ++i) {
    ETUDE_RETURN_IF_ERROR(write("step" + Number(size, i) + ".data", ranks.data[i]->data));
  }
  for (size_t rank = 0; rank < size; ++rank) {
    if (sources[rank].gaps.empty()) continue;
    ETUDE_RETURN_IF_ERROR(write("gaps" + Number(size, rank) + ".data", sources[rank].gaps));
  }
  if (size > 1) ETUDE_RETURN_IF_ERROR(write("ranks.data", RanksData(sources, ranks)));
  ETUDE_RETURN_IF_ERROR(write("README.md", Readme(sources, ranks.codes.size(), facts)));
  ETUDE_RETURN_IF_ERROR(files.Commit());
  return replaces ? RemoveOld(folder, written) : Status();
}

}  // namespace etude
