#include "src/cli/replay.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/analysis/time_summary.h"
#include "src/formats/atomic_file.h"
#include "src/formats/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/torch/replayer.h"
#include "src/transform/link.h"

namespace etude {
namespace {

// A recorded step and what is known about the program it comes from.
struct ReplaySource {
  Trace trace;
  StepTimes original;
  std::optional<int64_t> threads;
  std::string result_path;  // where the report is kept; "" for what is no capture
};

Result<const CaptureRank*> ChooseRank(const CaptureFolder& folder, int64_t wanted) {
  if (wanted < 0 && folder.ranks.size() == 1) return &folder.ranks.front();
  std::string known;
  for (const CaptureRank& rank : folder.ranks) {
    if (rank.number() == wanted) return &rank;
    known += (known.empty() ? "" : ", ") + std::to_string(rank.number());
  }
  return MakeError(ErrorCode::kUsage,
                   wanted < 0
                       ? fmt::format("{}: has ranks {}; choose one with --rank", folder.path, known)
                       : fmt::format("{}: no rank {}; found {}", folder.path, wanted, known));
}

StepTimes OriginalTimes(const JobRank& job) {
  std::vector<Nanos> wall;
  std::vector<Nanos> cpu;
  for (const StepTime& step : job.ComparableSteps()) {
    wall.push_back(step.wall);
    cpu.push_back(step.cpu);
  }
  if (wall.empty()) return {};
  return {.wall = Summarise(std::move(wall)), .cpu = Summarise(std::move(cpu))};
}

// The trace of a rank, with the operators' recorded times where they can be had.
Result<Trace> ReadRank(const CaptureFolder& folder, const CaptureRank& rank,
                       const ReadOptions& options, const RunContext& context) {
  if (rank.host.empty()) {
    if (!rank.linked.empty()) return ReadTrace(rank.linked, options, context);
    return BadInput(folder.path +
                    ": found no PyTorch execution trace of the rank, which a replay needs");
  }
  ETUDE_ASSIGN_OR_RETURN(Trace host, ReadTrace(rank.host, options, context));
  if (rank.device.empty()) return host;
  Result<Trace> device = ReadTrace(rank.device, options, context);
  if (!device) {
    context.Warn("no recorded times: " + device.error().message);
    return host;
  }
  Result<LinkResult> linked =
      Link(host, *device, {.keep_orphans = false, .limits = context.limits});
  if (!linked) {
    context.Warn("no recorded times: " + linked.error().message);
    return host;
  }
  return std::move(linked->trace);
}

Result<ReplaySource> OpenSource(const std::string& path, int64_t wanted_rank, bool strict,
                                const RunContext& context) {
  const ReadOptions options{.strict = strict};
  if (!std::filesystem::is_directory(path)) {
    ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadTrace(path, options, context));
    return ReplaySource{.trace = std::move(trace)};
  }
  ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
  ETUDE_ASSIGN_OR_RETURN(const CaptureRank* rank, ChooseRank(folder, wanted_rank));
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadRank(folder, *rank, options, context));
  ReplaySource source{.trace = std::move(trace), .result_path = {}};
  if (const JobRank* job = folder.job_rank(*rank); job != nullptr) {
    // Folders that `etude record` did not make are left as they are.
    source.result_path = folder.File(fmt::format("replay.{}.json", rank->number()));
    source.original = OriginalTimes(*job);
    source.threads = job->threads;
  }
  return source;
}

class ReplayCommand : public Command {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override {
    return "run a recorded step's operators again and compare the time";
  }

  void Declare(Options& options) override {
    options.Positional("trace", &path_, "a capture folder, or a PyTorch execution trace");
    options.Value("--rank", &rank_, "N", "which rank of a folder");
    options.Value("--device", &replay_.device, "DEVICE",
                  "cpu or cuda:N (default: a GPU if the trace used one and there is one)");
    options.Value("--warmup", &replay_.warmup, "N", "steps before the timed ones");
    options.Value("--iterations", &replay_.iterations, "N", "timed steps");
    options.Value("--threads", &threads_, "N",
                  "threads of PyTorch's pool (default: as recorded, else 1)");
    options.Value("--seed", &seed_, "N", "seed of what the memory is filled with");
    options.Value("--label", &replay_.label, "TEXT",
                  "only what is below the first node whose name contains TEXT");
    options.Values("--skip", &replay_.skip, "OPERATOR", "do not run this operator");
    options.Values("--only", &replay_.only, "OPERATOR", "run only this operator");
    options.Flag("--allow-skips", &allow_skips_, "exit with 0 although operators were skipped");
    options.Flag("--per-op", &replay_.per_operator, "time each kind of operator as well");
    options.Flag("--paced", &paced_,
                 "after set-up, run one step per line of standard input and print its time");
    options.Flag("--json", &json_, "print JSON");
    options.Footer("Exit code 1 if an operator could not be replayed, unless --allow-skips.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckNumbers());
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source,
                           OpenSource(path_, rank_, console.strict(), console.context()));
    replay_.seed = static_cast<uint64_t>(seed_);
    replay_.threads = threads_ > 0 ? threads_ : source.threads.value_or(1);
    if (paced_) return RunPaced(source, console);

    ETUDE_ASSIGN_OR_RETURN(ReplayReport report, Replay(source.trace, replay_, console.context()));
    report.source = path_;
    report.original = source.original;
    const std::string json = ReplayReportJson(report);
    if (!source.result_path.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(source.result_path, json));
    }
    console.Print(json_ ? json : ReplayReportText(report));
    return Answer(report);
  }

 private:
  Status CheckNumbers() const {
    const auto check = [](std::string_view option, int64_t value, int64_t low) -> Status {
      constexpr int64_t kMost = 1'000'000;
      if (value >= low && value <= kMost) return {};
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: found {}, expected {} to {}", option, value, low, kMost));
    };
    ETUDE_RETURN_IF_ERROR(check("--warmup", replay_.warmup, 0));
    ETUDE_RETURN_IF_ERROR(check("--iterations", replay_.iterations, 1));
    ETUDE_RETURN_IF_ERROR(check("--threads", threads_, 0));
    return {};
  }

  ExitCode Answer(const ReplayReport& report) const {
    return report.skipped.empty() || allow_skips_ ? ExitCode::kOk : ExitCode::kNo;
  }

  // One line of JSON with what was set up, then one per step asked for.
  Result<ExitCode> RunPaced(const ReplaySource& source, const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(Replayer replayer,
                           Replayer::Prepare(source.trace, replay_, console.context()));
    for (int64_t i = 0; i < replay_.warmup; ++i) ETUDE_RETURN_IF_ERROR(replayer.RunStep());
    ReplayReport report = replayer.report();
    report.source = path_;
    report.original = source.original;
    report.warmup = replay_.warmup;
    std::string json = ReplayReportJson(report);
    json.erase(std::remove(json.begin(), json.end(), '\n'), json.end());
    console.Print(json + "\n");
    std::fflush(stdout);
    char line[256];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const StepSample sample, replayer.RunStep());
      console.Print(fmt::format("{{\"wall_ns\":{},\"cpu_ns\":{},\"minor_faults\":{}}}\n",
                                sample.wall.count, sample.cpu.count, sample.minor_faults));
      std::fflush(stdout);
    }
    return Answer(report);
  }

  std::string path_;
  int64_t rank_ = -1;
  int64_t threads_ = 0;
  int64_t seed_ = 0;
  ReplayOptions replay_;
  bool allow_skips_ = false;
  bool paced_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace etude
