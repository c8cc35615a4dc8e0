#include "src/cli/replay.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/analysis/comm_model.h"
#include "src/analysis/health.h"
#include "src/analysis/step_kinds.h"
#include "src/base/quantity.h"
#include "src/cli/launcher.h"
#include "src/cli/output_files.h"
#include "src/cli/rank_processes.h"
#include "src/cli/replay_names.h"
#include "src/cli/replay_source.h"
#include "src/compose/composition.h"
#include "src/formats/atomic_file.h"
#include "src/formats/capture_folder.h"
#include "src/replay/step_mix.h"
#include "src/report/run_of_trace.h"
#include "src/torch/operator_library.h"
#include "src/torch/rank_group.h"
#include "src/torch/replayer.h"

namespace etude {
namespace {

constexpr int64_t kMostStepsOrSeconds = 1'000'000;  // of steps, and of seconds

// Tells the others how this rank fared, and learns how they did.
Status ShareSummaries(RankGroup& group, ReplayReport& report) {
  static_assert(std::is_trivially_copyable_v<RankSummary>);
  const RankSummary own{.rank = group.rank(),
                        .operators = report.operators,
                        .operators_replayed = report.operators_replayed,
                        .time_coverage = report.time_coverage,
                        .replay = report.replay};
  std::string bytes(sizeof own, '\0');
  std::memcpy(bytes.data(), &own, sizeof own);
  ETUDE_RETURN_IF_ERROR(group.Tell(bytes));
  for (const int64_t rank : group.present()) {
    ETUDE_ASSIGN_OR_RETURN(const std::string told, group.ToldBy(rank));
    RankSummary& row = report.ranks.emplace_back();
    std::memcpy(&row, told.data(), std::min(told.size(), sizeof row));
  }
  return {};
}

// "20us,10GB/s": the latency, and the bytes that pass in a second.
Result<CommModel> ParsePeers(std::string_view text) {
  const size_t comma = text.find(',');
  const std::string_view bandwidth =
      comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  const auto latency = ParseTime(text.substr(0, comma));
  const auto bytes = bandwidth.ends_with("/s")
                         ? ParseBytes(bandwidth.substr(0, bandwidth.size() - 2))
                         : std::nullopt;
  if (latency && *latency >= Nanos{} && bytes && *bytes > Bytes{}) {
    return CommModel{.latency = *latency, .bytes_per_second = static_cast<double>(bytes->count)};
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--peers: found '{}', expected fake, trace, or LATENCY,BANDWIDTH as "
                               "20us,10GB/s",
                               text));
}

// What a step of this kind takes of a program whose steps take `mean` on average; nullopt if
// unknown.
std::optional<Nanos> ShareOf(const StepTimes& mean, const std::vector<StepKind>& kinds,
                             const StepKind& kind) {
  double steps = 0;
  double time = 0;
  for (const StepKind& one : kinds) {
    if (!one.time) return std::nullopt;
    steps += static_cast<double>(one.steps.size());
    time += static_cast<double>(one.time->count);
  }
  if (!mean.wall || time <= 0) return std::nullopt;
  const double recorded =
      static_cast<double>(kind.time->count) / static_cast<double>(kind.steps.size());
  const auto whole = static_cast<double>(mean.wall->median.count);
  return Nanos{static_cast<int64_t>(whole * recorded / (time / steps))};
}

// Of a recorded step, the mean of all.
Work WorkOfStep(const Trace& trace, const std::vector<StepKind>& kinds) {
  double steps = 0;
  for (const StepKind& kind : kinds) steps += static_cast<double>(kind.steps.size());
  Work work = WorkOf(trace);
  work.flop /= steps;
  work.bytes /= steps;
  return work;
}

// What --paced prints of a step: a line of JSON without what is unknown.
std::string StepLine(const StepSample& sample) {
  std::string line = fmt::format(
      "{{\"pid\":{},\"wall_ns\":{},\"cpu_ns\":{},\"busy_gaps_ns\":{},\"idle_gaps_ns\":{},"
      "\"minor_faults\":{},\"voluntary_switches\":{},\"involuntary_switches\":{}",
      getpid(), sample.wall.count, sample.cpu.count, sample.gaps.busy.count, sample.gaps.idle.count,
      sample.counts.minor_faults, sample.counts.voluntary_switches,
      sample.counts.involuntary_switches);
  if (sample.resident) line += fmt::format(",\"resident_bytes\":{}", sample.resident->count);
  if (sample.peak_resident) {
    line += fmt::format(",\"peak_resident_bytes\":{}", sample.peak_resident->count);
  }
  return line + "}\n";
}

// What --paced prints for the line "kernels".
std::string KernelsLine(const std::optional<KernelMatch>& kernels) {
  const auto share = [](const std::optional<double>& part) {
    return part ? fmt::format("{}", *part) : "null";
  };
  return fmt::format("{{\"same_kernels\":{},\"same_kernels_by_time\":{}}}\n",
                     share(kernels ? kernels->by_count : std::nullopt),
                     share(kernels ? kernels->by_time : std::nullopt));
}

// Of each kind of recorded steps for how many it stands; the one of `step` is replayed.
std::vector<KindSummary> WeightsOf(const std::vector<StepKind>& kinds, size_t step) {
  Nanos all;
  bool known = true;
  for (const StepKind& kind : kinds) {
    known = known && kind.time.has_value();
    all = all + kind.time.value_or(Nanos{});
  }
  std::vector<KindSummary> rows;
  for (const StepKind& kind : kinds) {
    KindSummary row{.replayed = std::ranges::count(kind.steps, step) != 0,
                    .step = static_cast<int64_t>(kind.typical),
                    .steps = static_cast<int64_t>(kind.steps.size())};
    if (known && all.count > 0) {
      row.time_share = static_cast<double>(kind.time->count) / static_cast<double>(all.count);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

class ReplayCommand : public Command {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override { return kReplaySummary; }

  void Declare(Options& options) override {
    options.Positional("trace", &path_, "a capture folder, or a PyTorch execution trace");
    options.Value("--rank", &rank_, "N", "which rank of a folder", {.least = 0});
    options.Value("--ranks", &ranks_, "WHICH",
                  "replay several ranks of a folder at once, one process each, with their "
                  "collectives: all, the first N, or a list as 0,2; the report is that of --rank "
                  "(default: the first)");
    options.Value("--peers", &peers_, "MODEL",
                  "what stands for ranks that are not replayed: fake, which takes no time; trace, "
                  "as long as recorded communications took; or LATENCY,BANDWIDTH as 20us,10GB/s");
    options.Value("--scale", &scale_, "FACTORS",
                  "emulate another machine: how many times as long operators take, by class (comm, "
                  "compute, matrix, host) or name: comm=0.5,compute=2,aten::mm=1.5");
    options.Values("--straggler", &stragglers_, "RANK=FACTOR",
                   "one rank that is so many times slower but for communication");
    options.Flag("--pin", &pin_, "keep each of --ranks to its own share of the processors");
    options.Value("--timeout", &timeout_s_, "SECONDS", "how long a collective may make no progress",
                  {.least = 1, .most = kMostStepsOrSeconds});
    options.Value("--device", &replay_.device, "DEVICE",
                  "cpu or cuda:N (default: a GPU if the trace used one and there is one)");
    options.Flag("--experimental", &replay_.experimental,
                 "also on a GPU, where replays have not been tried yet");
    options.Values("--library", &libraries_, "FILE",
                   "load a shared library that registers operators (TORCH_LIBRARY); its code runs");
    options.Value("--warmup", &replay_.warmup, "N", "steps before the timed ones",
                  {.least = 0, .most = kMostStepsOrSeconds});
    options.Value("--iterations", &replay_.iterations, "N", "timed steps",
                  {.least = 1, .most = kMostStepsOrSeconds});
    options.Value("--threads", &threads_, "N",
                  "threads of PyTorch's pool (default: as recorded, else 1)",
                  {.least = 1, .most = kThreadsMax});
    options.Value("--seed", &seed_, "N", "seed of what the memory is filled with", {.least = 0});
    options.Value("--label", &replay_.label, "TEXT",
                  "only what is below the first node with operators whose name contains TEXT");
    options.Values("--skip", &replay_.skip, "OPERATOR",
                   "do not run this operator, or those of a class: comm, compute, matrix");
    options.Values("--only", &replay_.only, "OPERATOR",
                   "run only this operator, or those of a class: comm, compute, matrix");
    options.Flag("--allow-skips", &allow_skips_, "exit with 0 although operators were skipped");
    options.Flag("--per-op", &per_operator_, "list the times of operators, recorded and replayed");
    options.Value("--record", &replay_.recording, "FILE",
                  "keep the recording of the replay, a native capture");
    options.Choice("--steps", &all_steps_, {"kinds", "first"},
                   "of several recorded steps: one of each kind, weighted, or the first");
    options.Choice("--gaps", &gaps_, {"none", "recorded"},
                   "where the recorded program was busy with no operator: go on at once, or let as "
                   "much time pass");
    options.Flag("--paced", &paced_,
                 "after set-up, run one step per line of standard input and print its time");
    options.Flag("--json", &json_, "print JSON");
    options.Footer("Exit code 1 if an operator could not be replayed, unless --allow-skips.");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (gaps_ == "recorded") replay_.gaps = GapMode::kRecorded;
    replay_.seed = static_cast<uint64_t>(seed_);
    replay_.paced = paced_;
    ETUDE_RETURN_IF_ERROR(ReadScale());
    ETUDE_RETURN_IF_ERROR(ReadPeers());
    ETUDE_ASSIGN_OR_RETURN(const std::optional<Launch> launch, FindLaunch(FromEnvironment));
    if (pin_ && !launch && ranks_.empty()) {
      return MakeError(ErrorCode::kUsage, "--pin: shares the processors among --ranks");
    }
    if (launch && IsFolder(path_) && !rank_) return RunLaunched(*launch, console);
    if (ranks_.empty()) return RunRank(console, console.context());

    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks, FindRanks(console));
    lead_ = rank_.value_or(ranks.present.front());
    if (!std::ranges::count(ranks.present, lead_)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--rank {}: not among --ranks {}", lead_, ranks_));
    }
    ETUDE_ASSIGN_OR_RETURN(const MeetingPlace place, MeetingPlace::Open());
    return RunRanks(ranks.present, lead_, [&](int64_t rank) -> Result<ExitCode> {
      RankGroup group({.rank = rank,
                       .size = ranks.size,
                       .present = ranks.present,
                       .lead = lead_,
                       .local_rank = std::ranges::find(ranks.present, rank) - ranks.present.begin(),
                       .place = place,
                       .timeout = std::chrono::seconds(timeout_s_)});
      BeginSession();
      return RunOfRanks(rank, group, console);
    });
  }

 private:
  // Replays the rank that a launcher started this process as.
  Result<ExitCode> RunLaunched(const Launch& launch, const Console& console) {
    if (paced_ || pin_) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: not for ranks that a launcher started",
                                                      paced_ ? "--paced" : "--pin"));
    }
    if (ranks_.empty()) ranks_ = peers_.empty() ? "all" : std::to_string(launch.size);
    ETUDE_ASSIGN_OR_RETURN(const RanksOfJob ranks, FindRanks(console));
    if (launch.size != static_cast<int64_t>(ranks.present.size())) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{} started {} processes, expected {}: one for each rank of {}",
                                   launch.launcher, launch.size, ranks.present.size(), path_));
    }
    lead_ = ranks.present.front();
    const int64_t rank = ranks.present[static_cast<size_t>(launch.rank)];
    RankGroup group({.rank = rank,
                     .size = ranks.size,
                     .present = ranks.present,
                     .lead = lead_,
                     .local_rank = launch.local_rank,
                     .place = {.host = launch.host,
                               .port = launch.port,
                               .store_is_there = launch.store_is_there,
                               .one_machine = launch.one_machine,
                               .interface = launch.interface,
                               .run = launch.run,
                               .each_ends_itself = true},
                     .timeout = std::chrono::seconds(timeout_s_)});
    ETUDE_ASSIGN_OR_RETURN(const ExitCode answer, RunOfRanks(rank, group, console));
    ETUDE_RETURN_IF_ERROR(group.Leave());
    return answer;
  }

  Result<RanksOfJob> FindRanks(const Console& console) const {
    ETUDE_ASSIGN_OR_RETURN(RanksOfJob ranks, ChooseRanks(path_, ranks_, console.context()));
    ETUDE_RETURN_IF_ERROR(CheckStragglers(ranks));
    const size_t missing = static_cast<size_t>(ranks.size) - ranks.present.size();
    if (missing == 0 || !peers_.empty()) return ranks;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--ranks {}: of {} ranks that were recorded {} are not replayed; "
                                 "--peers says what stands for them",
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

  // Whether each straggler is among the ranks that are replayed.
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

  // --peers as a model, but for "trace".
  Status ReadPeers() {
    if (peers_.empty() || peers_ == "trace" || peers_ == "fake") return {};
    ETUDE_ASSIGN_OR_RETURN(peer_model_, ParsePeers(peers_));
    return {};
  }

  // What stands for ranks of the job that are not there; of all, if this is replayed alone.
  Result<EmulatedPeers> EmulatePeers(const ReplaySource& source, const std::optional<CommFit>& fit,
                                     std::optional<RankGroup>& alone) {
    if (replay_.group == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const RanksOfJob job, AloneIn(source));
      lead_ = job.present.front();
      rank_ = lead_;
      alone.emplace(RankGroup::Member{
          .rank = lead_, .size = job.size, .present = job.present, .lead = lead_, .place = {}});
      replay_.group = &*alone;
    }
    EmulatedPeers peers{.model = peer_model_,
                        .size = replay_.group->size(),
                        .present = static_cast<int64_t>(replay_.group->present().size())};
    if (peers_ == "trace") {
      peers.fit = fit;
      if (!fit) {
        return BadInput(path_ +
                        ": says of no communication how long it took; --peers "
                        "LATENCY,BANDWIDTH or fake need no such times");
      }
      peers.model = fit->model;
    }
    const double slower =
        replay_.scale ? replay_.scale->slowdown() * replay_.scale->OfCommunication() : 1;
    replay_.group->SetPeers(peers.model.Slower(slower));
    return peers;
  }

  Result<ExitCode> RunOfRanks(int64_t rank, RankGroup& group, const Console& console) {
    rank_ = rank;
    replay_.group = &group;
    if (pin_) {
      const std::vector<int64_t>& all = group.present();
      const auto place = static_cast<size_t>(std::ranges::find(all, rank) - all.begin());
      ETUDE_RETURN_IF_ERROR(PinToShare(place, all.size()));
    }
    RunContext context = console.context();
    if (rank != lead_) context.progress = nullptr;
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
    std::optional<EmulatedPeers> peers;
    std::optional<RankGroup> alone;
    std::optional<CommFit> fit;
    if (peers_ == "trace" || replay_.scale) fit = FitCommModel(CommTimes(source.trace));
    if (fit) replay_.comm = fit->model;
    if (!peers_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(peers, EmulatePeers(source, fit, alone));
    }
    ETUDE_RETURN_IF_ERROR(CheckNames(source.trace, replay_));
    if (replay_.group == nullptr || alone) {
      ETUDE_ASSIGN_OR_RETURN(const RanksOfJob job, AloneIn(source));
      ETUDE_RETURN_IF_ERROR(CheckStragglers(job));
    }
    FollowProgram(source, threads_, replay_);
    const std::vector<StepKind> kinds = FindStepKinds(source.trace);
    if (all_steps_ != "first") TakeStep(paced_ ? MiddleKind(kinds) : kinds.front());
    // A trace that lacks something is replayed in full all the same: kernels of a compiler.
    if (is_lead()) {
      for (const std::string& note : source.notes) context.Warn("as recorded: " + note);
    }
    if (paced_) return RunPaced(source, kinds, peers, console, context);

    ETUDE_ASSIGN_OR_RETURN(ReplayReport report, ReplayKinds(source, kinds, context));
    report.per_operator = per_operator_;
    AddSource(source, kinds, report);
    report.peers = peers;
    ETUDE_RETURN_IF_ERROR(Share(report));
    const std::string json = ReplayReportJson(report);
    if (!source.result_path.empty() && report.part.is_whole() && !peers && !replay_.scale) {
      KeepResult(source.result_path, json, context);
    }
    // The lead's end is that of all: not before they have written theirs.
    if (replay_.group != nullptr) ETUDE_RETURN_IF_ERROR(replay_.group->Meet());
    if (!is_lead()) return Answer(report);
    console.Print(json_ ? json : ReplayReportText(report));
    return Answer(report);
  }

  // What is known of the program.
  void AddSource(const ReplaySource& source, const std::vector<StepKind>& kinds,
                 ReplayReport& report) const {
    report.source = path_;
    report.notes = source.notes;
    report.libraries = libraries_;
    report.health = JudgeTrace(source.trace, RunOfTrace(source.trace, source.rank.value_or(0)));
    if (source.rank) report.rank = source.rank;
    if (!report.part.is_whole()) return;
    report.work = WorkOfStep(source.trace, kinds);
    report.composition = CompositionOf(source.trace);
    report.original = report.kinds.size() > 1 ? source.original_mix : source.original;
  }

  // The step that stands for a kind; with other ranks, whose steps are chosen by themselves, its
  // first.
  void TakeStep(const StepKind& kind) {
    replay_.step = replay_.group == nullptr ? kind.typical : kind.steps.front();
    replay_.alike = kind.steps;
  }

  // Each kind of recorded steps, one after the other; of several ranks, which have to stay
  // together, and of parts of a step, the first step only.
  Result<ReplayReport> ReplayKinds(const ReplaySource& source, const std::vector<StepKind>& kinds,
                                   const RunContext& context) {
    if (kinds.size() == 1 || all_steps_ == "first" || replay_.group != nullptr ||
        !replay_.label.empty() || !replay_.only.empty() || !replay_.skip.empty()) {
      return Replay(source.trace, replay_, context);
    }
    std::vector<std::optional<Calibration>> found;
    for (const StepKind& kind : kinds) {
      TakeStep(kind);
      ETUDE_ASSIGN_OR_RETURN(found.emplace_back(),
                             Replayer::TryOut(source.trace, replay_, context));
    }
    std::vector<ReplayedKind> replayed;
    for (size_t i = 0; i < kinds.size(); ++i) {
      const StepKind& kind = kinds[i];
      TakeStep(kind);
      replay_.calibration = found[i] ? &*found[i] : nullptr;
      // Of the program's steps only the mean is known for all kinds.
      replay_.minor_faults = std::nullopt;
      replay_.original_waiting = {};
      replay_.original_step = ShareOf(source.original_mix, kinds, kind);
      ETUDE_ASSIGN_OR_RETURN(ReplayReport report, Replay(source.trace, replay_, context));
      replayed.push_back({.step = static_cast<int64_t>(kind.typical),
                          .steps = static_cast<int64_t>(kind.steps.size()),
                          .recorded = kind.time,
                          .report = std::move(report)});
    }
    return CombineKinds(std::move(replayed));
  }

  bool is_lead() const { return replay_.group == nullptr || rank_ == lead_; }
  Status Share(ReplayReport& report) const {
    return replay_.group == nullptr ? Status() : ShareSummaries(*replay_.group, report);
  }

  ExitCode Answer(const ReplayReport& report) const {
    const bool complete =
        report.skipped.empty() && std::ranges::all_of(report.ranks, [](const RankSummary& row) {
          return row.operators_replayed == row.operators;
        });
    return complete || allow_skips_ ? ExitCode::kOk : ExitCode::kNo;
  }

  // One line of JSON with what was set up, then one per step asked for, or one that says which
  // kernels run. Of several ranks the lead does so; the others run a step whenever the lead does.
  Result<ExitCode> RunPaced(const ReplaySource& source, const std::vector<StepKind>& kinds,
                            const std::optional<EmulatedPeers>& peers, const Console& console,
                            const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(source.trace, replay_, context));
    for (int64_t i = 0; i < replay_.warmup; ++i)
      ETUDE_RETURN_IF_ERROR(replayer.RunStep(replay_.gaps));
    ReplayReport report = replayer.report();
    AddSource(source, kinds, report);
    report.peers = peers;
    report.kinds = WeightsOf(kinds, replay_.step);
    report.warmup = replay_.warmup;
    ETUDE_RETURN_IF_ERROR(Share(report));
    while (!is_lead()) ETUDE_RETURN_IF_ERROR(replayer.RunStep(replay_.gaps));
    std::string json = ReplayReportJson(report);
    json.erase(std::remove(json.begin(), json.end(), '\n'), json.end());
    console.Print(json + "\n");
    std::fflush(stdout);
    char line[256];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
      if (std::strcmp(line, "kernels\n") == 0) {
        ETUDE_RETURN_IF_ERROR(replayer.FindKernels());
        console.Print(KernelsLine(replayer.report().kernels));
      } else {
        ETUDE_ASSIGN_OR_RETURN(const StepSample sample, replayer.RunStep(replay_.gaps));
        console.Print(StepLine(sample));
      }
      std::fflush(stdout);
    }
    return Answer(report);
  }

  std::string path_;
  std::optional<int64_t> rank_;
  std::string ranks_;
  std::string peers_;
  CommModel peer_model_;  // that it says; no time for all but LATENCY,BANDWIDTH
  std::string scale_;
  std::vector<std::string> stragglers_;
  int64_t lead_ = 0;
  int64_t timeout_s_ = 60;
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
