#include "src/cli/app/commands.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/analysis/comm/comm_model.h"
#include "src/analysis/compare/step_kinds.h"
#include "src/analysis/health.h"
#include "src/cli/app/launcher.h"
#include "src/cli/torch/rank_processes.h"
#include "src/cli/torch/replay_kinds.h"
#include "src/cli/torch/replay_names.h"
#include "src/cli/torch/replay_paced.h"
#include "src/cli/torch/replay_peers.h"
#include "src/cli/torch/replay_ranks.h"
#include "src/cli/torch/replay_source.h"
#include "src/compose/composition.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/output_files.h"
#include "src/run/rank_run.h"
#include "src/torch/group/rank_group.h"
#include "src/torch/operator_library.h"
#include "src/torch/replayer.h"

namespace etude {
namespace {

constexpr int64_t kMostStepsOrSeconds = 1'000'000;  // maximum of steps, and of seconds

class ReplayCommand : public Command {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override { return kReplaySummary; }

  void Declare(Options& options) override {
    options.Positional("trace", &path_, "capture folder, or PyTorch execution trace");
    options.Value("--rank", &rank_, "N", "rank in the capture folder", {.least = 0});
    options.Value(
        "--ranks", &ranks_, "WHICH",
        "replay several ranks of a folder with their collectives, one process each: all, the first "
        "N, or a list such as 0-3,6; the report covers --rank (default: the first)");
    options.Value("--peers", &peers_text_, "MODEL",
                  "communication model for ranks that are not replayed: fake (no time), trace "
                  "(recorded durations), or LATENCY,BANDWIDTH such as 20us,10GB/s");
    options.Value("--scale", &scale_, "FACTORS",
                  "emulate another machine: factors for operator times by class (comm, compute, "
                  "matrix, host) or name, such as comm=0.5,compute=2,aten::mm=1.5");
    options.Values("--straggler", &stragglers_, "RANK:FACTOR",
                   "slow down one rank by FACTOR, except its communication");
    options.Flag("--pin", &pin_, "pin each rank of --ranks to its own share of the processors");
    options.Value("--timeout", &timeout_s_, "SECONDS",
                  "seconds without progress after which a collective counts as hung",
                  {.least = 1, .most = kMostStepsOrSeconds});
    options.Value("--device", &replay_.device, "DEVICE",
                  "cpu or cuda:N (default: a GPU if the trace used one and one is available)");
    options.Flag("--experimental", &replay_.experimental,
                 "allow devices other than CPU and CUDA, where replay is untested");
    options.Values("--library", &libraries_, "FILE",
                   "load a shared library that registers operators (TORCH_LIBRARY); its code runs");
    options.Value("--warmup", &replay_.warmup, "N",
                  "number of warm-up steps before the timed steps",
                  {.least = 0, .most = kMostStepsOrSeconds});
    options.Value("--iterations", &replay_.iterations, "N", "number of timed steps",
                  {.least = 1, .most = kMostStepsOrSeconds});
    options.Value("--threads", &threads_, "N",
                  "number of threads in PyTorch's pool (default: as recorded, else 1)",
                  {.least = 1, .most = kThreadsMax});
    options.Value("--seed", &seed_, "N", "seed for random tensor contents", {.least = 0});
    options.Value("--label", &replay_.label, "TEXT",
                  "run only operators below the first node whose name contains TEXT");
    options.Values("--skip", &replay_.skip, "OPERATOR",
                   "skip this operator or class of operators: comm, compute, matrix");
    options.Values("--only", &replay_.only, "OPERATOR",
                   "run only this operator or class of operators: comm, compute, matrix");
    options.Values(
        "--stand-in", &replay_.stand_in, "OPERATOR",
        "with --gaps recorded: if this operator cannot run, wait for its recorded time instead");
    options.Flag("--allow-skips", &allow_skips_, "exit with code 0 even if operators were skipped");
    options.Flag("--per-op", &per_operator_, "list the times of operators, recorded and replayed");
    options.Value("--record", &replay_.recording, "FILE",
                  "record the replay into FILE, a native capture");
    options.Choice(
        "--steps", &all_steps_, {"kinds", "first"},
        "steps to replay if several are recorded: one of each kind, weighted; or the first");
    options.Choice(
        "--gaps", &gaps_, {"none", "recorded"},
        "gaps between the recorded operators: skip them (none), or wait as long (recorded)");
    options.Flag("--paced", &paced_,
                 "after set-up, run one step per line of standard input and print its time");
    options.Flag("--json", &json_, "print JSON");
    options.Footer(
        "Exit code 1 if operators were skipped that communicate or took at least 0.05 % of the "
        "time, unless --allow-skips is given.");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (gaps_ == "recorded") replay_.gaps = GapMode::kRecorded;
    replay_.seed = static_cast<uint64_t>(seed_);
    replay_.paced = paced_;
    if (!replay_.stand_in.empty() && replay_.gaps == GapMode::kNone) {
      return MakeError(ErrorCode::kUsage, "--stand-in requires --gaps recorded");
    }
    ETUDE_RETURN_IF_ERROR(ReadScale());
    ETUDE_ASSIGN_OR_RETURN(peers_, PeersOption::Parse(peers_text_));
    ETUDE_ASSIGN_OR_RETURN(const std::optional<Launch> launch, FindLaunch(FromEnvironment));
    if (pin_ && !launch && ranks_.empty()) {
      return MakeError(ErrorCode::kUsage, "--pin requires --ranks");
    }
    if (launch && IsFolder(path_) && !rank_) return RunLaunched(*launch, console);
    if (ranks_.empty()) return RunRank(console, console.context());

    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks, FindRanks(console));
    lead_ = rank_.value_or(ranks.present.front());
    if (!std::ranges::count(ranks.present, lead_)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--rank {}: not among --ranks {}", lead_, ranks_));
    }
    return RunLocalRanks(ranks, lead_, std::chrono::seconds(timeout_s_),
                         [&](RankGroup& group) { return RunOfRanks(group, console); });
  }

 private:
  // Replays the rank for which a launcher started this process.
  Result<ExitCode> RunLaunched(const Launch& launch, const Console& console) {
    if (paced_ || pin_) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{} cannot be combined with ranks started by a launcher",
                                   paced_ ? "--paced" : "--pin"));
    }
    if (ranks_.empty()) ranks_ = peers_.is_given() ? std::to_string(launch.size) : "all";
    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks, FindRanks(console));
    lead_ = ranks.present.front();
    return RunLaunchedRank(launch, ranks, path_, std::chrono::seconds(timeout_s_),
                           [&](RankGroup& group) { return RunOfRanks(group, console); });
  }

  Result<RanksOfJob> FindRanks(const Console& console) const {
    ETUDE_ASSIGN_OR_RETURN(RanksOfJob ranks, ChooseRanks(path_, ranks_, console.context()));
    ETUDE_RETURN_IF_ERROR(CheckStragglers(ranks));
    const size_t missing = static_cast<size_t>(ranks.size) - ranks.present.size();
    if (missing == 0 || peers_.is_given()) return ranks;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--ranks {}: of {} recorded ranks {} are not replayed; choose a "
                                 "model for them with --peers",
                                 ranks_, ranks.size, missing));
  }

  Status ReadScale() {
    if (scale_.empty() && stragglers_.empty()) return {};
    const auto wrong = [](std::string_view option, const Error& error) {
      return MakeError(error.code, fmt::format("{}: {}", option, error.message));
    };
    Result<TimeScale> scale = TimeScale::Parse(scale_);
    if (!scale) return wrong("--scale", scale.error());
    for (const std::string& straggler : stragglers_) {
      const Status added = scale->AddStraggler(straggler);
      if (!added) return wrong("--straggler", added.error());
    }
    replay_.scale = *std::move(scale);
    return {};
  }

  // Checks that each straggler is among the replayed ranks.
  Status CheckStragglers(const RanksOfJob& ranks) const {
    if (!replay_.scale) return {};
    for (const int64_t rank : replay_.scale->stragglers()) {
      if (rank >= ranks.size) {
        return MakeError(ErrorCode::kUsage,
                         fmt::format("--straggler: the job has no rank {}, expected one below {}",
                                     rank, ranks.size));
      }
      if (std::ranges::count(ranks.present, rank)) continue;
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--straggler: rank {} is not replayed, expected one of {}", rank,
                                   fmt::join(ranks.present, ", ")));
    }
    return {};
  }

  Result<ExitCode> RunOfRanks(RankGroup& group, const Console& console) {
    rank_ = group.rank();
    replay_.group = &group;
    if (pin_) {
      const std::vector<int64_t>& all = group.present();
      const auto place = static_cast<size_t>(std::ranges::find(all, *rank_) - all.begin());
      ETUDE_RETURN_IF_ERROR(PinToShare(place, all.size()));
    }
    RunContext context = console.context();
    if (!is_lead()) context.progress = nullptr;
    return RunRank(console, context);
  }

  // Replays one rank: the only one, or this process's among several.
  Result<ExitCode> RunRank(const Console& console, const RunContext& context) {
    for (const std::string& library : libraries_) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source,
                           OpenSource(path_, rank_, console.strict(), context));
    for (const std::string& file : source.files) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(replay_.recording, {file}));
    }
    std::optional<RankGroup> alone;
    if (replay_.group == nullptr) ETUDE_RETURN_IF_ERROR(StandAlone(source, alone));
    std::optional<CommFit> fit;
    if (peers_.follows_trace() || replay_.scale) fit = FitCommModel(CommTimes(source.trace));
    if (fit) replay_.comm = fit->model;
    std::optional<EmulatedPeers> peers;
    if (peers_.is_given()) {
      ETUDE_ASSIGN_OR_RETURN(peers, peers_.StandIn(*replay_.group, fit, replay_.scale, path_));
    }
    ETUDE_RETURN_IF_ERROR(CheckNames(source.trace, replay_));
    FollowProgram(source, threads_, replay_);
    const std::vector<StepKind> kinds = source.Kinds();
    if (all_steps_ != "first") TakeStep(paced_ ? source.MainKind(kinds) : kinds.front(), replay_);
    // Compiled kernels that the trace lacks do not make the replay partial.
    if (is_lead()) {
      for (const std::string& note : source.notes) context.Warn("as recorded: " + note);
    }
    if (paced_) return RunPaced(source, kinds, peers, console, context);

    ETUDE_ASSIGN_OR_RETURN(ReplayReport report,
                           replays_each(kinds) ? ReplayEachKind(source, kinds, replay_, context)
                                               : Replay(source.trace, replay_, context));
    report.per_operator = per_operator_;
    ETUDE_RETURN_IF_ERROR(Complete(source, kinds, peers, report));
    const std::string json = ReplayReportJson(report);
    if (!source.result_path.empty() && report.part.is_whole() && !peers && !replay_.scale) {
      KeepResult(source.result_path, json, context);
    }
    // The lead ends last, after the others have written their reports.
    if (replay_.group != nullptr) ETUDE_RETURN_IF_ERROR(replay_.group->Meet());
    if (!is_lead()) return Answer(report);
    if (!json_ && !threads_ && !source.threads) {
      console.Say(
          "etude: the capture lacks the program's number of threads; using 1 (set it with "
          "--threads)");
    }
    console.Print(json_ ? json : ReplayReportText(report));
    return Answer(report);
  }

  // Sets up emulation of other ranks, if requested.
  Status StandAlone(const ReplaySource& source, std::optional<RankGroup>& alone) {
    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob job, AloneIn(source));
    ETUDE_RETURN_IF_ERROR(CheckStragglers(job));
    if (!peers_.is_given()) return {};
    lead_ = job.present.front();
    rank_ = lead_;
    alone.emplace(RankGroup::Member{
        .rank = lead_, .size = job.size, .present = job.present, .lead = lead_, .place = {}});
    replay_.group = &*alone;
    return {};
  }

  // Adds facts of the program and of other ranks to the replay's report.
  Status Complete(const ReplaySource& source, const std::vector<StepKind>& kinds,
                  const std::optional<EmulatedPeers>& peers, ReplayReport& report) const {
    report.source = path_;
    report.notes = source.notes;
    report.libraries = libraries_;
    report.peers = peers;
    report.health = JudgeTrace(source.trace, source.rank.value_or(0));
    if (source.rank) report.rank = source.rank;
    report.job = source.job;
    if (report.part.is_whole()) {
      report.work = WorkOfStep(source.trace, kinds);
      report.composition = CompositionOf(source.trace);
      report.original = report.kinds.size() > 1 ? source.original_mix : source.original;
    }
    return replay_.group == nullptr ? Status() : ShareSummaries(*replay_.group, report);
  }

  // Several ranks, which have to stay together, and parts of steps replay the first step only.
  bool replays_each(const std::vector<StepKind>& kinds) const {
    return kinds.size() > 1 && all_steps_ != "first" && replay_.group == nullptr &&
           replay_.label.empty() && replay_.only.empty() && replay_.skip.empty();
  }
  bool is_lead() const { return replay_.group == nullptr || rank_ == lead_; }

  ExitCode Answer(const ReplayReport& report) const {
    const bool complete =
        IsComplete(report.skipped) && std::ranges::all_of(report.ranks, &RankSummary::complete);
    return complete || allow_skips_ ? ExitCode::kOk : ExitCode::kNo;
  }

  // With several ranks, the lead receives the requests; the others run a step whenever it does.
  Result<ExitCode> RunPaced(const ReplaySource& source, const std::vector<StepKind>& kinds,
                            const std::optional<EmulatedPeers>& peers, const Console& console,
                            const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(source.trace, replay_, context));
    for (int64_t i = 0; i < replay_.warmup; ++i) {
      ETUDE_RETURN_IF_ERROR(replayer.RunStep(replay_.gaps));
    }
    ReplayReport report = replayer.report();
    report.warmup = replay_.warmup;
    ETUDE_RETURN_IF_ERROR(Complete(source, kinds, peers, report));
    report.kinds = WeightsOf(kinds, replay_.step);
    while (!is_lead()) ETUDE_RETURN_IF_ERROR(replayer.RunStep(replay_.gaps));
    ETUDE_RETURN_IF_ERROR(ServePacedSteps(replayer, replay_.gaps, report, console));
    return Answer(report);
  }

  std::string path_;
  std::optional<int64_t> rank_;
  std::string ranks_;
  std::string peers_text_;
  PeersOption peers_;
  std::string scale_;
  std::vector<std::string> stragglers_;
  int64_t lead_ = 0;
  int64_t timeout_s_ = kUsualTimeout.count();
  bool pin_ = false;
  std::optional<int64_t> threads_;
  int64_t seed_ = 0;
  ReplayOptions replay_;
  std::string gaps_ = "none";
  std::string all_steps_ = "kinds";
  std::vector<std::string> libraries_;
  bool per_operator_ = false;
  bool allow_skips_ = false;
  bool paced_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace etude
