#include "src/cli/app/commands.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/analysis/compare/step_kinds.h"
#include "src/cli/torch/replay_names.h"
#include "src/cli/torch/replay_ranks.h"
#include "src/cli/torch/replay_source.h"
#include "src/jobs/output_files.h"
#include "src/run/rank_run.h"
#include "src/standalone/benchmark_folder.h"
#include "src/torch/group/rank_group.h"
#include "src/torch/operator_library.h"
#include "src/torch/replayer.h"

namespace etude {
namespace {

constexpr int64_t kMostSteps = 1'000'000;  // maximum of steps

class BenchmarkCommand : public Command {
 public:
  std::string_view name() const override { return "benchmark"; }
  std::string_view summary() const override { return kBenchmarkSummary; }

  void Declare(Options& options) override {
    options.Positional("trace", &path_,
                       "capture folder, or PyTorch execution trace: recorded, linked or composed");
    options.Output("-o,--output", &output_, "FOLDER", "folder to write", {});
    options.Required("--output");
    options.Value("--rank", &rank_, "N", "rank in the capture folder", {.least = 0});
    options.Choice("--ranks", &ranks_, {"one", "all"},
                   "one: one rank without communication; all: all ranks of a folder with "
                   "communication, to be started by torchrun");
    options.Flag("--keep-names", &keep_names_, "keep module names and string arguments");
    options.Value("--device", &replay_.device, "DEVICE",
                  "device for the trial run: cpu or cuda:N (default: a GPU if the trace used one "
                  "and one is available; cpu with --ranks all)");
    options.Flag("--experimental", &replay_.experimental,
                 "allow devices other than CPU and CUDA, where benchmarks are untested");
    options.Values("--library", &libraries_, "FILE",
                   "load a shared library that registers operators (TORCH_LIBRARY); its code runs");
    options.Value("--threads", &threads_, "N",
                  "number of threads in PyTorch's pool (default: as recorded, else 1)",
                  {.least = 1, .most = kThreadsMax});
    options.Value("--label", &replay_.label, "TEXT",
                  "take only operators below the first node whose name contains TEXT");
    options.Values("--skip", &replay_.skip, "OPERATOR",
                   "skip this operator or class of operators: comm, compute, matrix");
    options.Values("--only", &replay_.only, "OPERATOR",
                   "keep only this operator or class of operators: comm, compute, matrix");
    options.Values("--stand-in", &replay_.stand_in, "OPERATOR",
                   "if this operator cannot run, wait for its recorded time instead");
    options.Value("--warmup", &replay_.warmup, "N", "number of warm-up steps of the replay",
                  {.least = 0, .most = kMostSteps});
    options.Value(
        "--iterations", &replay_.iterations, "N",
        "number of timed steps of the replay, which the README compares with the original",
        {.least = 1, .most = kMostSteps});
    options.Footer(
        "If several steps are recorded, the one with the median time is used. Exit code 1 if "
        "operators are missing that communicate or took at least 0.05 % of the time; the README "
        "lists them.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckOtherFolder(name(), path_, output_));
    ETUDE_RETURN_IF_ERROR(CheckBenchmarkFolder(output_));
    if (ranks_ == "one") return RunRank(nullptr, console, console.context());
    if (rank_) return MakeError(ErrorCode::kUsage, "--rank cannot be combined with --ranks all");
    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks, ChooseRanks(path_, "all", console.context()));
    if (ranks.size == 1) return RunRank(nullptr, console, console.context());
    constexpr int64_t kLead = 0;
    return RunLocalRanks(ranks, kLead, kUsualTimeout, [&](RankGroup& group) {
      rank_ = group.rank();
      RunContext context = console.context();
      if (rank_ != kLead) context.progress = nullptr;
      return RunRank(&group, console, context);
    });
  }

 private:
  // Runs one rank: the only one, or this process's of the `group`, whose first rank writes the
  // files.
  Result<ExitCode> RunRank(RankGroup* group, const Console& console, const RunContext& context) {
    for (const std::string& library : libraries_) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source,
                           OpenSource(path_, rank_, console.strict(), context));
    ETUDE_RETURN_IF_ERROR(CheckNames(source.trace, replay_));
    replay_.group = group;
    SetOptions(source);
    ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(source.trace, replay_, context));
    ETUDE_ASSIGN_OR_RETURN(const ReplayReport report, replayer.Measure());
    ETUDE_ASSIGN_OR_RETURN(const Program program, replayer.ToProgram(keep_names_));
    StepSource own = SourceOf(program);
    own.left_out = report.operators - report.operators_replayed;
    own.complete = IsComplete(report.skipped);
    ETUDE_ASSIGN_OR_RETURN(const auto steps, ShareSteps(group, std::move(own)));
    // The first rank's answer is the job's.
    if (steps.empty()) return ExitCode::kOk;
    ETUDE_RETURN_IF_ERROR(MakeFolder(output_));
    ETUDE_RETURN_IF_ERROR(WriteBenchmark(steps, FactsOf(source, report), output_));
    const std::string of_ranks =
        steps.size() == 1 ? "" : fmt::format(" on rank 0 of {} ranks", steps.size());
    console.Print(fmt::format("wrote {}: {} of {}, {}{}\n", output_,
                              FormatCount(static_cast<uint64_t>(report.operators_replayed)),
                              FormatCount(report.operators, "operator"),
                              FormatCount(program.calls.size(), "call"), of_ranks));
    console.Print(SkippedText(report));
    return std::ranges::all_of(steps, &StepSource::complete) ? ExitCode::kOk : ExitCode::kNo;
  }

  // Returns the steps of all ranks on the first one, nothing on others; without a group, the own
  // step.
  static Result<std::vector<StepSource>> ShareSteps(RankGroup* group, StepSource own) {
    std::vector<StepSource> steps;
    if (group == nullptr) {
      steps.push_back(std::move(own));
      return steps;
    }
    ETUDE_RETURN_IF_ERROR(group->Tell(ToBytes(own)));
    for (int64_t rank = 0; group->rank() == 0 && rank < group->size(); ++rank) {
      ETUDE_ASSIGN_OR_RETURN(const std::string told, group->ToldBy(rank));
      ETUDE_ASSIGN_OR_RETURN(steps.emplace_back(), StepSourceOf(told));
    }
    return steps;
  }

  void SetOptions(const ReplaySource& source) {
    if (replay_.device.empty() && replay_.group != nullptr) replay_.device = "cpu";
    FollowProgram(source, threads_, replay_);
    replay_.gradients = false;  // the written program has no autograd, either
    const std::vector<StepKind> kinds = source.Kinds();
    const StepKind& kind = source.MainKind(kinds);
    // Ranks choose separately: the first step of a kind is the same on all.
    replay_.step = replay_.group == nullptr ? kind.typical : kinds.front().steps.front();
    replay_.alike = replay_.group == nullptr ? kind.steps : kinds.front().steps;
  }

  BenchmarkFacts FactsOf(const ReplaySource& source, const ReplayReport& report) const {
    BenchmarkFacts facts{.operators = report.operators,
                         .operators_run = report.operators_replayed,
                         .time_coverage = report.time_coverage,
                         .torch_version = report.torch_version,
                         .device = report.device,
                         .health = JudgeTrace(source.trace, source.rank.value_or(0)),
                         .keep_names = keep_names_};
    if (report.part.is_whole() && source.original.wall) {
      facts.original.wall = source.original.wall->median;
    }
    if (report.part.is_whole() && source.original.cpu) {
      facts.original.cpu = source.original.cpu->median;
    }
    if (report.part.is_whole() && report.recorded_faults) {
      facts.original_faults = static_cast<double>(*report.recorded_faults);
    }
    const auto figures = [](const StepTimes& times) {
      return BenchmarkFacts::Figures{
          .cpu = times.cpu ? std::optional(times.cpu->median) : std::nullopt,
          .wall = times.wall ? std::optional(times.wall->median) : std::nullopt};
    };
    facts.replay_faults = report.minor_faults;
    facts.original_growth = report.recorded_memory_growth;
    facts.replay_growth = report.memory_growth;
    facts.peak = Bytes{report.peak_bytes};
    facts.with_gaps = figures(report.with_gaps);
    facts.without_gaps = figures(report.without_gaps);
    for (const SkippedOperators& row : report.skipped) {
      facts.left_out.push_back({.op = row.op,
                                .reason = row.reason,
                                .count = row.count,
                                .time_share = row.time_share,
                                .stand_in = row.stand_in});
    }
    return facts;
  }

  std::string path_;
  std::string output_;
  std::optional<int64_t> rank_;
  std::string ranks_ = "one";
  bool keep_names_ = false;
  std::optional<int64_t> threads_;
  std::vector<std::string> libraries_;
  ReplayOptions replay_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchmarkCommand() { return std::make_unique<BenchmarkCommand>(); }

}  // namespace etude
