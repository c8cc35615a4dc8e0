#include "src/cli/app/commands.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/cli/trace/selection_options.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/transform/edit/slice.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

struct SliceJob {
  RankInput input;
  int64_t rank = 0;
  std::string output;
};

struct SliceDone {
  Json json;
  std::string text;
  std::optional<Error> empty;  // the rank contains nothing of the selection
};

std::string ToText(const SliceJob& job, const SliceResult& slice, uint64_t nodes) {
  std::string text = fmt::format("{}: {} of {} selected\n", job.input.path,
                                 FormatCount(slice.selected), FormatCount(nodes, "node"));
  const auto line = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("  {}: {}\n", what, FormatCount(count));
  };
  line(slice.launched, "kept: device work launched by selected nodes");
  line(slice.around, "kept: parents of selected nodes");
  line(slice.cut_dependencies, "dependencies on nodes outside, removed");
  line(slice.dangling, "references to missing nodes, dropped");
  line(slice.untimed, "nodes without a time, never selected by --time");
  return text;
}

class SliceCommand : public Command {
 public:
  std::string_view name() const override { return "slice"; }
  std::string_view summary() const override {
    return "extract a part of a trace by label, step, thread, stream, module, time, operator or "
           "phase";
  }

  void Declare(Options& options) override {
    options.Positional("input", &input_, "trace in any format, or capture folder (all ranks)");
    options.Output("-o,--output", &output_, "PATH", "file to write; for a folder: output folder",
                   {".et", ".json"});
    options.Required("--output");
    options.Choice("--to", &to_, {"linked", "et"},
                   "output format: linked JSON or Chakra (default: from the file name)");
    what_.Declare(options);
    options.Jobs(&jobs_, "ranks of a folder");
    options.Flag("--json", &json_, "print a summary of the output as JSON");
    options.Footer(
        "If an option is repeated, a node must match one of its values. If several options are "
        "given, a node must match each of them.");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (what_.selection.empty() && what_.ranks.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "slice: missing selector: --label, --step, --thread, --stream, --module, "
                       "--time, --op, --phase, --micro-batch, --comm or --rank");
    }
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<SliceJob> jobs, FindJobs(console));
    ETUDE_ASSIGN_OR_RETURN(std::vector<SliceDone> done,
                           ForEachRank<SliceDone>(jobs.size(), jobs_, console.context(),
                                                  [&](size_t i, const RunContext& context) {
                                                    return SliceOne(jobs[i], console.strict(),
                                                                    context);
                                                  }));
    if (std::ranges::all_of(done, [](const SliceDone& slice) { return slice.empty.has_value(); })) {
      return tl::unexpected<Error>(*done.front().empty);
    }
    if (output_ == "-") return ExitCode::kOk;
    if (json_) {
      Json json = {{"format", "etude-slice"}, {"version", 1}, {"slices", Json::array()}};
      for (SliceDone& slice : done) json["slices"].push_back(std::move(slice.json));
      console.Print(JsonText(json));
    } else {
      for (const SliceDone& slice : done) console.Print(slice.text);
    }
    return ExitCode::kOk;
  }

 private:
  Result<std::vector<SliceJob>> FindJobs(const Console& console) const {
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankInput> inputs,
                           what_.FindInputs({input_}, console.context()));
    std::vector<SliceJob> jobs;
    const bool is_folder = input_ != "-" && IsFolder(input_);
    if (is_folder) ETUDE_RETURN_IF_ERROR(CheckOutputFolder());
    for (RankInput& input : inputs) {
      SliceJob job{.input = std::move(input), .rank = 0, .output = output_};
      job.rank = job.input.rank.value_or(0);
      if (is_folder) {
        const auto format = to_ == "et" ? OutputFormat::kChakra : OutputFormat::kLinked;
        job.output += "/" + RankFileName(format, job.rank, job.input.path);
      }
      ETUDE_RETURN_IF_ERROR(CheckOutput(job.output, {job.input.path, job.input.device}));
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  Status CheckOutputFolder() const {
    std::error_code error;
    if (output_ == "-" || std::filesystem::is_regular_file(output_, error)) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("slice: -o {}: expected a folder for the ranks of {}", output_, input_));
    }
    // Slices in this folder would be taken for the job's linked traces.
    return CheckOtherFolder(name(), input_, output_);
  }

  Result<SliceDone> SliceOne(const SliceJob& job, bool strict, const RunContext& context) const {
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(job.input, {.strict = strict}, context));
    Result<SliceResult> slice = Slice(trace, what_.selection, context.limits);
    if (!slice) {
      const std::string message = job.input.path + ": " + slice.error().message;
      if (slice.error().code != ErrorCode::kUsage) return MakeError(slice.error().code, message);
      // Other ranks may contain the selection.
      return SliceDone{.json = {{"input", job.input.path}, {"nothing_selected", message}},
                       .text = message + "\n  nothing written\n",
                       .empty = Error{ErrorCode::kUsage, message}};
    }
    if (job.output != output_) ETUDE_RETURN_IF_ERROR(MakeFolder(output_));
    const TraceOutput output{
        .path = job.output,
        .format = FormatOf(to_, job.output),
        .break_cycles = !strict,
        .existing = job.output == output_ ? Existing::kFollow : Existing::kReplace};
    ETUDE_ASSIGN_OR_RETURN(const WrittenTrace written,
                           WriteTraceOf(job.input.path, slice->trace, output, context));
    SliceDone result;
    result.json = {{"input", job.input.path}, {"nodes", trace.node_count()}};
    result.json.update(SliceAccount(*slice));
    result.json["output"] = ToJson(written);
    result.text = ToText(job, *slice, trace.node_count()) + ToText(written);
    return result;
  }

  std::string input_;
  std::string output_;
  std::string to_;
  SelectionOptions what_;
  int64_t jobs_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSliceCommand() { return std::make_unique<SliceCommand>(); }

}  // namespace etude
