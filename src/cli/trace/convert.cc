#include "src/cli/app/commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/each_rank.h"
#include "src/base/text/quantity.h"
#include "src/cli/compat/compat.h"
#include "src/cli/inspect/rank_results.h"
#include "src/cli/trace/for_astra_sim.h"
#include "src/cli/trace/pytorch_pair.h"
#include "src/cli/trace/write_job.h"
#include "src/compat/chakra/chakra_tools.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/health_output.h"
#include "src/run/rank_run.h"
#include "src/transform/read_job.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

// A trace to convert; `device` is the Kineto trace to link it with first, or "".
struct ConvertJob {
  int64_t rank = 0;
  bool rank_stated = false;  // false: 0 is assumed for a single trace
  std::string input;
  std::string device;
  std::string output;
};

class ConvertCommand : public Command {
 public:
  std::string_view name() const override { return "convert"; }
  std::string_view summary() const override {
    return "convert traces to another format: Chakra (.et), linked JSON, or PyTorch's pair of "
           "files";
  }

  void Declare(Options& options) override {
    options.Positional("input", &input_, "trace, or capture folder (converts all ranks)");
    options.Output("-o,--output", &output_, "PATH",
                   "file to write; for a folder: output folder (default: the input folder)",
                   {".et", ".json"});
    options.Choice("--to", &to_, {"et", "linked", "pytorch", "classes", "packed"},
                   "output format: Chakra, linked JSON (default: from the file name, else Chakra); "
                   "or a folder: host.N.json and device.N.json as PyTorch writes them, or a job of "
                   "rank classes with Chakra or packed files");
    options.Output("--linked", &linked_, "FILE",
                   "also write the linked trace (only for one pair of traces)", {".json"});
    options.Jobs(&jobs_, "ranks of a folder");
    options.Choice("--for", &for_, {"astra-sim"}, "write all ranks as a job for this simulator");
    options.Choice("--compute", &compute_, {"durations", "flops"},
                   "--for: write recorded durations, or also FLOPs and bytes by shapes");
    options.Flag("--fill-ranks", &fill_ranks_,
                 "--for: use the trace of the nearest recorded rank for ranks without one");
    options.Value("--ranks", &ranks_, "RANKS",
                  "--for: number of ranks in the job, if the traces lack it; folder of classes: "
                  "ranks to write: all, the first N, or a list such as 0-7,12 (default: all)");
    options.Value("--comm-groups", &comm_groups_, "FILE",
                  "--for, --to classes: file with the ranks of process groups, in ASTRA-sim's "
                  "format, for traces that lack them");
    options.Flag("--json", &json_, "print a summary of the output as JSON");
    options.Positional("device", &device_, "Kineto trace of the same run, to be linked first",
                       /*required=*/false);
    options.Choice("--compat", &compat_, {kCompatChakra},
                   "write output byte-identical to this version of Chakra");
  }

  Result<ExitCode> Run(const Console& console) override {
    const bool expands =
        (to_.empty() || to_ == "et") && for_.empty() && compat_.empty() && IsJobFolder(input_);
    ETUDE_RETURN_IF_ERROR(CheckSelected(expands));
    if (ranks_ && !expands) {
      const std::optional<int64_t> count = ParseWhole(*ranks_);
      if (!count || *count < 0) {
        return MakeError(ErrorCode::kUsage,
                         fmt::format("--ranks: found '{}', expected a whole number", *ranks_));
      }
      rank_count_ = *count;
    }
    if (expands) return ExpandClasses(console);
    if (to_ == "pytorch") return ConvertToPyTorch(console);
    if (to_ == "classes" || to_ == "packed") return ConvertToClasses(console);
    ETUDE_ASSIGN_OR_RETURN(const std::vector<ConvertJob> jobs, FindJobs(console));
    if (!linked_.empty() && device_.empty()) {
      return MakeError(ErrorCode::kUsage, "convert: --linked requires a host and a device trace");
    }
    ETUDE_RETURN_IF_ERROR(CheckOutput(linked_, {input_, device_}));
    for (const ConvertJob& job : jobs) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(job.output, {job.input, job.device}));
    }
    if (!compat_.empty()) {
      for (const ConvertJob& job : jobs) {
        ETUDE_RETURN_IF_ERROR(ConvertAsChakra(job, console.context()));
      }
      return ExitCode::kOk;
    }
    if (!for_.empty()) return ConvertForSimulator(jobs, console);
    Result<std::vector<RankResult>> done = ForEachRank<RankResult>(
        jobs.size(), jobs_, console.context(), [&](size_t i, const RunContext& context) {
          return ConvertOne(jobs[i], console.strict(), context);
        });
    if (!done) {
      std::error_code ignored;
      if (made_folder_) std::filesystem::remove(output_, ignored);  // unless it is not empty
      return tl::unexpected<Error>(std::move(done).error());
    }
    if (jobs.front().output == "-") return ExitCode::kOk;
    PrintRankResults(*std::move(done), json_, "etude-convert", "files", console);
    return ExitCode::kOk;
  }

 private:
  // Rejects options that the requested output does not use.
  Status CheckSelected(bool expands) const {
    const bool simulates = !for_.empty();
    const bool to_classes = to_ == "classes" || to_ == "packed";
    const auto only = [](std::string_view option, std::string_view with) {
      return MakeError(ErrorCode::kUsage, fmt::format("convert: {} requires {}", option, with));
    };
    if (fill_ranks_ && !simulates) return only("--fill-ranks", "--for");
    if (!compute_.empty() && !simulates) return only("--compute", "--for");
    if (!comm_groups_.empty() && !simulates && !to_classes) {
      return only("--comm-groups", "--for, --to classes or --to packed");
    }
    if (ranks_ && !simulates && !expands) {
      return only("--ranks", "--for, or a folder of classes as input");
    }
    return {};
  }

  Result<ExitCode> ConvertToPyTorch(const Console& console) const {
    if (!for_.empty() || !compat_.empty() || !linked_.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "convert: --to pytorch cannot be combined with --for, --compat or --linked");
    }
    PyTorchPairRequest request{.output = output_, .json = json_};
    if (device_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(request.inputs, FindRanks(std::span(&input_, 1), console.context()));
    } else {
      request.inputs = {{.path = input_, .device = device_}};
    }
    return WritePyTorchPairs(request, console);
  }

  Result<ExitCode> ConvertToClasses(const Console& console) const {
    if (!for_.empty() || !compat_.empty() || !linked_.empty() || !device_.empty()) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("convert: --to {} cannot be combined with a device trace, --for, --compat "
                      "or --linked",
                      to_));
    }
    JobClassesRequest request{.output = output_,
                              .files = to_ == "packed" ? ClassFiles::kPacked : ClassFiles::kChakra,
                              .groups = comm_groups_,
                              .jobs = jobs_};
    ETUDE_ASSIGN_OR_RETURN(request.inputs, FindRanks(std::span(&input_, 1), console.context()));
    return WriteJobClasses(request, json_, console);
  }

  Result<ExitCode> ExpandClasses(const Console& console) const {
    if (!linked_.empty() || !device_.empty()) {
      return MakeError(
          ErrorCode::kUsage,
          "convert: a folder of classes cannot be combined with a device trace or --linked");
    }
    return WriteJobRanks(
        {.folder = input_, .output = output_, .ranks = ranks_.value_or("all"), .jobs = jobs_},
        json_, console);
  }

  Result<ExitCode> ConvertForSimulator(const std::vector<ConvertJob>& jobs,
                                       const Console& console) const {
    AstraSimRequest request{.output = output_,
                            .flops = compute_ == "flops",
                            .fill_ranks = fill_ranks_,
                            .groups = comm_groups_,
                            .ranks = rank_count_,
                            .world_size = world_size_,
                            .break_cycles = !console.strict(),
                            .json = json_,
                            .jobs = jobs_};
    for (const ConvertJob& job : jobs) {
      request.inputs.push_back({.name = job.input,
                                .rank = job.rank_stated ? std::optional(job.rank) : std::nullopt,
                                .read = [&](const RunContext& context) {
                                  return Read(job, console.strict(), context);
                                }});
    }
    return ConvertForAstraSim(request, console);
  }

  Result<std::vector<ConvertJob>> FindJobs(const Console& console) {
    if (input_ != "-" && IsFolder(input_)) return FindJobsOfFolder(console);
    if (output_.empty()) {
      const tl::unexpected<Error> no_folder = NoFolder(input_);
      if (input_ != "-" && no_folder.value().code == ErrorCode::kIo) return no_folder;
      return MakeError(ErrorCode::kUsage, "convert: missing -o FILE");
    }
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    return std::vector<ConvertJob>{{.input = input_, .device = device_, .output = output_}};
  }

  // Returns the linked trace of each rank; without one, host and device trace are linked first.
  Result<std::vector<ConvertJob>> FindJobsOfFolder(const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder,
                           ListCaptureFolder(input_, console.context()));
    if (folder.job) world_size_ = folder.job->world_size;
    const std::string target = output_.empty() ? folder.path : output_;
    const bool to_linked = to_ == "linked";
    std::vector<ConvertJob> jobs;
    for (const CaptureRank& rank : folder.ranks) {
      ConvertJob job{.rank = rank.number(), .input = {}, .device = {}, .output = {}};
      if (to_linked && rank.native.empty() && !rank.chakra.empty()) {
        job.input = rank.chakra;
      } else if (!to_linked && !rank.linked.empty()) {
        job.input = rank.linked;
      } else if (!rank.native.empty()) {
        job.input = rank.native;
        job.device = rank.device;
      } else {
        job.input = rank.host;
        job.device = rank.device;
      }
      job.rank_stated = rank.rank.has_value();
      if (job.input.empty() && !for_.empty()) job.input = rank.chakra;
      if (job.input.empty()) {
        console.context().Warn(
            fmt::format("{}: rank {} has no trace to convert", folder.path, rank.number()));
        continue;
      }
      const OutputFormat format = to_linked ? OutputFormat::kLinked : OutputFormat::kChakra;
      job.output = target + "/" + RankFileName(format, rank.number(), job.input);
      jobs.push_back(std::move(job));
    }
    if (jobs.empty()) {
      return BadInput(
          folder.path +
          ": found no trace that can be converted, expected a host, linked or native trace");
    }
    ETUDE_ASSIGN_OR_RETURN(made_folder_, MakeFolder(target));
    return jobs;
  }

  Result<RankResult> ConvertOne(const ConvertJob& job, bool strict,
                                const RunContext& context) const {
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, Read(job, strict, context));
    if (!linked_.empty()) {
      ETUDE_RETURN_IF_ERROR(
          WriteTrace(trace, linked_, OutputFormat::kLinked, {.limits = context.limits}));
    }
    const TraceOutput output{.path = job.output,
                             .format = ChooseFormat(to_, job.output),
                             .break_cycles = !strict,
                             .existing = ExistingAt(job)};
    ETUDE_ASSIGN_OR_RETURN(const WrittenTrace written,
                           WriteTraceOf(job.input, trace, output, context));
    RankResult converted;
    converted.rank = trace.info().rank.value_or(job.rank);
    const RecordedRun run(trace);
    converted.run = MakeRankRun(run, converted.rank);
    converted.health = JudgeTrace(run, converted.run);
    converted.json = {{"input", job.input}, {"kind", Name(trace.info().format)}};
    converted.json["output"] = ToJson(written);
    converted.json["health"] = ToJson(converted.health);
    converted.text = ToText(written);
    converted.text += ShortText(converted.health);
    return converted;
  }

  // Users name the output of a single trace, but not those of a folder's ranks.
  Existing ExistingAt(const ConvertJob& job) const {
    return job.output == output_ ? Existing::kFollow : Existing::kReplace;
  }

  Status ConvertAsChakra(const ConvertJob& job, const RunContext& context) const {
    const Existing existing = ExistingAt(job);
    if (job.device.empty()) return compat::ConvertPyTorch(job.input, job.output, context, existing);
    return compat::TraceLink({.host = job.input,
                              .device = job.device,
                              .linked = linked_,
                              .et = job.output,
                              .existing = existing},
                             context);
  }

  Result<Trace> Read(const ConvertJob& job, bool strict, const RunContext& context) const {
    return ReadRank({.rank = job.rank, .path = job.input, .device = job.device},
                    ReadOptions{.strict = strict}, context);
  }

  std::string input_;
  std::string device_;
  std::string output_;
  std::string to_;
  std::string compat_;
  std::string linked_;
  int64_t jobs_ = 0;
  std::string for_;
  std::string compute_;
  bool fill_ranks_ = false;
  std::string comm_groups_;
  std::optional<std::string> ranks_;
  int64_t rank_count_ = 0;             // for --for
  std::optional<int64_t> world_size_;  // from the folder
  bool json_ = false;
  bool made_folder_ = false;  // the output folder is new
};

}  // namespace

std::unique_ptr<Command> MakeConvertCommand() { return std::make_unique<ConvertCommand>(); }

}  // namespace etude
