#include "src/cli/benchmark.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/analysis/step_kinds.h"
#include "src/cli/output_files.h"
#include "src/cli/replay_names.h"
#include "src/cli/replay_source.h"
#include "src/standalone/benchmark_folder.h"
#include "src/torch/operator_library.h"
#include "src/torch/replayer.h"

namespace etude {
namespace {

constexpr int64_t kMostSteps = 1'000'000;  // of steps

class BenchmarkCommand : public Command {
 public:
  std::string_view name() const override { return "benchmark"; }
  std::string_view summary() const override { return kBenchmarkSummary; }

  void Declare(Options& options) override {
    options.Positional("trace", &path_, "a capture folder, or a PyTorch execution trace");
    options.Value("-o,--output", &output_, "FOLDER", "the folder to write to");
    options.Required("--output");
    options.Value("--rank", &rank_, "N", "which rank of a folder", {.least = 0});
    options.Values("--library", &libraries_, "FILE",
                   "load a shared library that registers operators (TORCH_LIBRARY); its code runs");
    options.Value("--threads", &threads_, "N",
                  "threads of PyTorch's pool (default: as recorded, else 1)",
                  {.least = 1, .most = kThreadsMax});
    options.Value("--label", &replay_.label, "TEXT",
                  "only what is below the first node whose name contains TEXT");
    options.Values("--skip", &replay_.skip, "OPERATOR", "leave this operator out");
    options.Values("--only", &replay_.only, "OPERATOR", "this operator only");
    options.Value("--warmup", &replay_.warmup, "N", "steps of the replay before the timed ones",
                  {.least = 0, .most = kMostSteps});
    options.Value("--iterations", &replay_.iterations, "N",
                  "timed steps of the replay, which the README compares with the original",
                  {.least = 1, .most = kMostSteps});
    options.Footer(
        "Of several recorded steps the one with the median time is taken. Exit code 1 if an "
        "operator could not be taken over; the README lists them.");
  }

  Result<ExitCode> Run(const Console& console) override {
    const RunContext& context = console.context();
    for (const std::string& library : libraries_) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source,
                           OpenSource(path_, rank_, console.strict(), context));
    ETUDE_RETURN_IF_ERROR(CheckNames(source.trace, replay_));
    SetOptions(source);
    ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(source.trace, replay_, context));
    ETUDE_ASSIGN_OR_RETURN(const ReplayReport report, replayer.Measure());
    ETUDE_ASSIGN_OR_RETURN(const Program program, replayer.ToProgram());
    ETUDE_RETURN_IF_ERROR(MakeFolder(output_));
    ETUDE_RETURN_IF_ERROR(WriteBenchmark(program, FactsOf(source, report), output_));
    console.Print(fmt::format("wrote {}: {} of {} operators, {} calls\n", output_,
                              report.operators_replayed, report.operators, program.calls.size()));
    return report.skipped.empty() ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  void SetOptions(const ReplaySource& source) {
    replay_.device = "cpu";
    FollowProgram(source, threads_, replay_);
    const std::vector<StepKind> kinds = FindStepKinds(source.trace);
    const StepKind& kind = MiddleKind(kinds);
    replay_.step = kind.typical;
    replay_.alike = kind.steps;
  }

  BenchmarkFacts FactsOf(const ReplaySource& source, const ReplayReport& report) const {
    BenchmarkFacts facts{.operators = report.operators,
                         .operators_run = report.operators_replayed,
                         .time_coverage = report.time_coverage,
                         .torch_version = report.torch_version,
                         .device = report.device};
    if (report.part.is_whole() && source.original.wall) {
      facts.original_wall = source.original.wall->median;
    }
    if (report.part.is_whole() && source.original.cpu) {
      facts.original_cpu = source.original.cpu->median;
    }
    if (report.replay.wall) facts.replay_wall = report.replay.wall->median;
    if (report.replay.cpu) facts.replay_cpu = report.replay.cpu->median;
    for (const SkippedOperators& row : report.skipped) {
      // What is no operator (a compiler's kernels) is named, and its files are, by the program.
      const bool is_operator = row.op.find("::") != std::string::npos;
      facts.left_out.push_back({.op = is_operator ? row.op : "no operator",
                                .reason = is_operator ? row.reason : "work of compiled code",
                                .count = row.count});
    }
    return facts;
  }

  std::string path_;
  std::string output_;
  std::optional<int64_t> rank_;
  std::optional<int64_t> threads_;
  std::vector<std::string> libraries_;
  ReplayOptions replay_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchmarkCommand() { return std::make_unique<BenchmarkCommand>(); }

}  // namespace etude
