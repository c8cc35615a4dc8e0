#include "src/cli/replay.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/formats/atomic_file.h"
#include "src/formats/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/torch/replayer.h"
#include "src/transform/link.h"

namespace etude {
namespace {

// What is replayed, and what it is compared with.
struct Source {
  std::string path;  // of the trace
  std::optional<CaptureFolder> folder;
  CaptureRank rank;
  std::vector<StepTime> original;  // steps timed without instrumentation
  std::optional<int64_t> threads;  // that the original had
};

Result<CaptureRank> ChooseRank(const CaptureFolder& folder, int64_t wanted) {
  if (wanted < 0) {
    if (folder.ranks.size() == 1) return folder.ranks.front();
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: holds {} ranks; choose one with --rank", folder.path,
                                 folder.ranks.size()));
  }
  for (const CaptureRank& rank : folder.ranks) {
    if (rank.number() == wanted) return rank;
  }
  return BadInput(fmt::format("{}: no trace of rank {}", folder.path, wanted));
}

Result<Source> FindSource(const std::string& path, int64_t rank, const RunContext& context) {
  Source source{.path = path};
  if (path == "-" || !std::filesystem::is_directory(path)) return source;
  ETUDE_ASSIGN_OR_RETURN(source.folder, ListCaptureFolder(path, context));
  ETUDE_ASSIGN_OR_RETURN(source.rank, ChooseRank(*source.folder, rank));
  source.path = source.rank.host.empty() ? source.rank.linked : source.rank.host;
  if (source.path.empty()) source.path = source.rank.chakra;
  if (source.path.empty()) {
    return BadInput(fmt::format("{}: has no host trace of rank {}: a device trace alone does not "
                                "say with which arguments operators ran",
                                path, source.rank.number()));
  }
  if (const JobRank* job = source.folder->job_rank(source.rank)) {
    source.original = job->ComparableSteps();
    source.threads = job->threads;
  }
  return source;
}

// The recorded duration of each host node, from the device trace of the same rank.
Result<std::vector<std::optional<Nanos>>> Durations(const Source& source, const Trace& host,
                                                    const ReadOptions& read,
                                                    const RunContext& context) {
  std::vector<std::optional<Nanos>> durations;
  if (source.rank.device.empty() || source.path != source.rank.host) return durations;
  ETUDE_ASSIGN_OR_RETURN(const Trace device, ReadTrace(source.rank.device, read, context));
  ETUDE_ASSIGN_OR_RETURN(const LinkResult linked,
                         Link(host, device, LinkOptions{.limits = context.limits}));
  // Host nodes come first in a linked trace, in their order.
  durations.resize(host.node_count());
  ForEachNode(host, [&](NodeId node) { durations[node.index()] = linked.trace.duration(node); });
  return durations;
}

StepTimes Summary(const std::vector<StepTime>& steps) {
  if (steps.empty()) return {};
  std::vector<Nanos> wall, cpu;
  for (const StepTime& step : steps) {
    wall.push_back(step.wall);
    cpu.push_back(step.cpu);
  }
  return {.wall = Summarise(std::move(wall)), .cpu = Summarise(std::move(cpu))};
}

class ReplayCommand : public Command {
 public:
  std::string_view name() const override { return "replay"; }
  std::string_view summary() const override {
    return "run a recorded step's operators again and compare the time";
  }

  void Declare(Options& options) override {
    options.Positional("source", &path_, "a capture folder, a trace, or - for stdin");
    options.Value("--rank", &rank_, "R", "which rank of a folder of several (-1: the only one)");
    options.Value("--device", &replay_.device, "DEVICE",
                  "where to run: cpu, cuda:0 … (default: the GPU if the trace used one and one is "
                  "here, else the CPU)");
    options.Value("--warmup", &replay_.warmup, "N", "steps before the first timed one");
    options.Value("--iterations", &replay_.iterations, "N", "timed steps");
    options.Value("--threads", &threads_, "N",
                  "threads of PyTorch's operators (0: as the original, else 1)");
    options.Value("--seed", &seed_, "N", "of the values that tensors from outside are filled with");
    options.Value("--label", &replay_.label, "TEXT",
                  "replay only what is below the first node of this name");
    options.Values("--skip", &replay_.skip, "OP", "leave an operator out (may be repeated)");
    options.Values("--only", &replay_.only, "OP", "run only this operator (may be repeated)");
    options.Flag("--allow-skips", &allow_skips_, "exit code 0 though operators were skipped");
    options.Flag("--per-op", &replay_.per_operator, "time each operator, beside its recorded time");
    options.Flag("--json", &json_, "print JSON");
    options.Flag("--paced", &paced_,
                 "after set-up, run one step for each line on stdin and print its times");
  }

  Result<ExitCode> Run(const Console& console) override;

 private:
  Result<ExitCode> RunPaced(const Console& console, const Trace& trace);

  std::string path_;
  int64_t rank_ = -1;
  int64_t threads_ = 0;
  int64_t seed_ = 0;
  ReplayOptions replay_;
  bool allow_skips_ = false;
  bool json_ = false;
  bool paced_ = false;
};

Result<ExitCode> ReplayCommand::Run(const Console& console) {
  if (replay_.warmup < 0 || replay_.iterations < 1 || threads_ < 0) {
    return MakeError(ErrorCode::kUsage,
                     "replay: --warmup and --threads must be 0 or more, --iterations 1 or more");
  }
  const RunContext& context = console.context();
  const ReadOptions read{.strict = console.strict()};
  ETUDE_ASSIGN_OR_RETURN(const Source source, FindSource(path_, rank_, context));
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(source.path, read, context));
  ETUDE_ASSIGN_OR_RETURN(replay_.durations, Durations(source, trace, read, context));
  replay_.threads = threads_ != 0 ? threads_ : source.threads.value_or(1);
  replay_.seed = static_cast<uint64_t>(seed_);
  if (paced_) return RunPaced(console, trace);

  ETUDE_ASSIGN_OR_RETURN(ReplayReport report, Replay(trace, replay_, context));
  report.source = source.path;
  if (source.folder) report.rank = static_cast<int>(source.rank.number());
  report.original = Summary(source.original);
  const std::string json = ReplayReportJson(report);
  console.Print(json_ ? json : ReplayReportText(report));
  if (source.folder) {
    const std::string file =
        source.folder->File(fmt::format("replay.{}.json", source.rank.number()));
    ETUDE_RETURN_IF_ERROR(WriteFile(file, json));
  }
  const bool complete = report.operators_replayed == report.operators;
  if (!complete && !allow_skips_) {
    console.Complain(fmt::format("{} of {} operators were not replayed; --allow-skips takes that",
                                 report.operators - report.operators_replayed, report.operators));
    return ExitCode::kNo;
  }
  return ExitCode::kOk;
}

Result<ExitCode> ReplayCommand::RunPaced(const Console& console, const Trace& trace) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(trace, replay_, console.context()));
  for (int64_t i = 0; i < replay_.warmup; ++i) ETUDE_RETURN_IF_ERROR(replayer.RunStep());
  const ReplayReport& report = replayer.report();
  console.Print(fmt::format(
      "{{\"ready\": true, \"operators\": {}, \"replayed\": {}, \"same_kernels\": {}, "
      "\"setup_ns\": {}, \"fill_ns\": {}}}\n",
      report.operators, report.operators_replayed,
      report.same_kernels ? fmt::format("{}", *report.same_kernels) : "null", report.setup.count,
      report.fill.count));
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    ETUDE_ASSIGN_OR_RETURN(const StepSample sample, replayer.RunStep());
    console.Print(fmt::format("{{\"wall_ns\": {}, \"cpu_ns\": {}, \"minor_faults\": {}}}\n",
                              sample.wall.count, sample.cpu.count, sample.minor_faults));
    std::fflush(stdout);
  }
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace etude
