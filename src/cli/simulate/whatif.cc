#include "src/cli/simulate/whatif.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/app/commands.h"
#include "src/cli/generate/model_options.h"
#include "src/cli/simulate/edits_file.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/edits/plan_edit.h"
#include "src/jobs/job_classes.h"
#include "src/jobs/output_files.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/what_if.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {
namespace {

class WhatIfCommand : public Command {
 public:
  // `measurer`: null in the program without libtorch.
  explicit WhatIfCommand(MakeOperatorMeasurer* measurer) : make_measurer_(measurer) {}

  std::string_view name() const override { return "whatif"; }
  std::string_view summary() const override {
    return "edit a recorded or generated job: other sizes, layers, ranks, plans and times";
  }

  void Declare(Options& options) override {
    options.Positionals(
        "job", &job_.paths,
        "capture folder, or traces of all ranks, recorded by Etude or PyTorch; or a job of "
        "`etude generate` for a model");
    options.Output("-o,--output", &output_, "FOLDER", "folder for the edited job", {});
    options.Required("--output");
    options.Value("--edits", &edits_file_, "FILE", "TOML file with edits: options as keys");
    DeclareRecordedEdits(options);
    options.Flag("--measure", &job_.what_if.measure,
                 "measure the operators with other sizes on this machine, and add them to the "
                 "table of --operators, if any");
    options.Value("--capacity", &capacity_text_, "SIZE|DEVICE",
                  "say whether the tensors of the edited recorded job fit into this memory, such "
                  "as 80GB or h100-sxm");
    options.Flag("--fill-ranks", &job_.fill_ranks,
                 "use the trace of the nearest recorded rank for ranks without one");
    options.Flag("--with-recording", &job_.with_recording,
                 "keep the recording overhead in the times");
    options.Jobs(&job_.jobs, "traces");
    options.Flag("--json", &json_, "print JSON");
    DeclareEditsOfPlans(options);
  }

  Result<ExitCode> Run(const Console& console) override {
    if (!capacity_text_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(capacity_, ParseCapacity(capacity_text_));
    }
    if (edits_file_.empty()) return Edit(console);
    ETUDE_RETURN_IF_ERROR(ReadEdits(console.context().limits));
    Result<ExitCode> done = Edit(console);
    // A wrong option of the command line is a wrong file here.
    if (!done && done.error().code == ErrorCode::kUsage) {
      return BadInput(fmt::format("{}: {}", edits_file_, done.error().message));
    }
    return done;
  }

 private:
  Result<ExitCode> Edit(const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(const bool is_edited, EditPlan(console));
    if (is_edited) return ExitCode::kOk;
    if (job_.what_if.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "whatif: missing edit, such as --layers, --dp, --bucket or --scale, or for "
                       "generated jobs an option of their plan");
    }
    ETUDE_RETURN_IF_ERROR(CheckNoTraces(output_, console.context()));
    job_.memory = true;
    OperatorMeasurer measurer;
    if (job_.what_if.measure) {
      if (make_measurer_ == nullptr) {
        return Unavailable(
            "whatif --measure: requires etude-torch next to this program, which is missing; build "
            "with -DETUDE_TORCH=ON or run ./quickstart");
      }
      ETUDE_ASSIGN_OR_RETURN(measurer, make_measurer_(job_, console));
    }
    ETUDE_ASSIGN_OR_RETURN(const SimJob read, ReadSimJob(job_, /*npus=*/0, console.strict(),
                                                         console.context(), measurer));
    ETUDE_RETURN_IF_ERROR(WriteJobFolder(*read.job, output_, console.context()));
    const JobCounts counts = CountsOf(*read.job);
    std::vector<std::string> notes = read.notes;
    if (read.recording_taken > Nanos{}) {
      notes.insert(notes.begin(), TakenText(read));
    }
    const Changes changes{.sources = job_.paths,
                          .ranks = counts.ranks,
                          .times_known = read.workload.rounded_times,
                          .recorded_step = read.recorded_step,
                          .program_step = read.program_step,
                          .core_share = read.workload.core_share,
                          .edits = read.edits,
                          .memory = read.memory,
                          .capacity = capacity_,
                          .notes = notes};
    ETUDE_RETURN_IF_ERROR(WriteChanges(changes, output_));
    if (json_) {
      console.Print(JsonText(ToJson(changes)));
      return ExitCode::kOk;
    }
    std::string text;
    for (const AppliedEdit& edit : read.edits) {
      text += fmt::format("{}: {} ({})\n", edit.edit, edit.text, Name(edit.certainty));
    }
    for (const auto& [device, before] : read.memory.before) {
      const auto after = read.memory.after.find(device);
      const bool is_known = after != read.memory.after.end();
      if (is_known && after->second == before) continue;
      text += fmt::format("memory of tensors on {}, largest rank: {} instead of {}\n", device,
                          is_known ? FormatBytes(after->second) : "unknown", FormatBytes(before));
    }
    if (capacity_) {
      const std::optional<bool> fits = TensorsFit(read.memory, capacity_->bytes);
      text += fmt::format("{} {} ({})\n",
                          !fits   ? "unknown whether the tensors fit into"
                          : *fits ? "the tensors fit into"
                                  : "the tensors do not fit into",
                          capacity_->device, FormatBytes(capacity_->bytes));
    }
    for (const std::string& note : notes) text += "note: " + note + "\n";
    console.Print(fmt::format("{}wrote {}: {}\n", text, output_, ClassesText(counts)));
    return ExitCode::kOk;
  }

  void DeclareRecordedEdits(Options& options) {
    options.Value("--second", &job_.what_if.second, "JOB",
                  "recording of the same program with another size, such as its batch");
    options.Value("--sizes", &job_.what_if.sizes, "FIRST,SECOND,WANTED",
                  "this size in the job and in --second, and the wanted one, such as 8,16,64");
    DimensionSizes& dimensions = job_.what_if.dimensions;
    const auto dimension = [&](std::string_view name, std::optional<int64_t>& size,
                               std::string_view help) {
      options.Value(name, &size, "N", help, {.least = 1, .most = int64_t{1} << 40});
    };
    dimension("--batch", dimensions.batch,
              "samples of a step, by one recording; of generated jobs only for dlrm, cnn and "
              "diffusion");
    dimension("--sequence", dimensions.sequence, "length of the sequences, by one recording");
    dimension("--hidden", dimensions.hidden,
              "size of the hidden states of a transformer, by one recording");
    dimension("--heads", dimensions.heads, "heads of each attention, by one recording");
    dimension("--ffn", dimensions.ffn,
              "size of the feed-forward networks' hidden layer, by one recording");
    dimension("--vocab", dimensions.vocabulary, "number of words, by one recording");
    options.Value("--layers", &job_.what_if.layers, "N",
                  "number of equal layers of the model, such as blocks of a transformer");
    options.Value("--pp", &job_.what_if.pipeline.stages, "N",
                  "number of pipeline stages; the layers are divided among them");
    options.Value("--micro-batches", &job_.what_if.pipeline.micro_batches, "N",
                  "micro-batches of a step with --pp; each is the recorded batch (default: 1)");
    options.Value("--schedule", &job_.what_if.pipeline.schedule, "NAME",
                  "pipeline schedule of a recorded job: gpipe or 1f1b (default); for generated "
                  "jobs also interleaved and zero-bubble");
    options.Value(
        "--dp", &job_.what_if.data_parallel, "N",
        "number of data-parallel ranks; the batch of each rank stays unless --keep is given");
    options.Value("--tp", &job_.what_if.tensor_parallel, "N",
                  "number of tensor-parallel ranks, which divide the weights, such as those of an "
                  "MLP and the heads of an attention");
    options.Value("--bucket", &job_.what_if.bucket, "SIZE",
                  "size of gradient buckets, as bucket_cap_mb (default: as recorded; with --dp of "
                  "a job of one rank 25MiB, and 1MiB for the first)");
    options.Value("--first-bucket", &job_.what_if.first_bucket, "SIZE",
                  "size of the first bucket of a backward pass (default: as --bucket)");
    CommEditOptions& communication = job_.what_if.communication;
    options.Value("--overlap", &communication.overlap, "on|off",
                  "reduce gradients beside the backward pass (on) or after it (off)");
    options.Value("--compress", &communication.compress, "FACTOR[,SPEED]",
                  "divide the bytes of gradients in communication; SPEED of compression and "
                  "decompression, such as 20GB/s (default: they take no time)");
    options.Value(
        "--rank-order", &communication.rank_order, "ORDER",
        "ranks in the order of the network's places, such as 0,2,1,3, or stride:N to make "
        "ranks at distance N neighbours");
    options.Value("--all-reduce", &communication.all_reduce, "FORM",
                  "replace all-reduces: reduce-scatter+all-gather, or hierarchical:N with N "
                  "neighbouring ranks");
    DeviceEditOptions& device = job_.what_if.device;
    options.Value(
        "--dtype", &device.dtype, "TYPE",
        "other type of floating-point tensors, such as bfloat16; times of matrix products "
        "stay; not with new buckets of gradients");
    options.Values("--fuse", &device.fuse, "OPERATOR,OPERATOR,…",
                   "fuse chains of element-wise operators, such as aten::add,aten::relu");
    options.Flag("--no-gaps", &device.no_gaps,
                 "remove the time of the host between operators, as with a captured graph");
    options.Value("--launch-cost", &device.launch_cost, "TIME|recorded",
                  "time of the host per launch of device work, such as 5us, or the recorded times "
                  "(default: none)");
    options.Value("--scale", &job_.what_if.scale, "WHAT=FACTOR,…",
                  "multiply times of compute, matrix, host or an operator, such as "
                  "matrix=0.5,aten::gelu=2");
    options.Values("--drop", &job_.what_if.drop, "OPERATOR",
                   "set the own time of an operator to 0, without the operators that it calls");
    options.Value("--operators", &job_.what_if.operators, "FILE",
                  "table of measured operators (etude calibrate --operators): for the operators "
                  "with other sizes, or without other sizes and --tp for all");
    options.Value("--recorded-operators", &job_.what_if.recorded_operators, "FILE",
                  "with --operators of another machine: table of the machine of the recording");
  }

  void DeclareEditsOfPlans(Options& options) {
    options.Group("Plans of generated jobs");
    options.Choice("--keep", &keep_, {std::string(kKeepsRankBatch), "global-batch"},
                   "batch that stays when --dp changes: that of each rank, or that of all");
    options.Value("--global-batch", &plan_.global_batch, "N",
                  "number of sequences, samples or images in a step over all replicas; changes "
                  "micro-batches, or samples in one",
                  {.least = 1, .most = int64_t{1} << 40});
    DeclarePlanEdits(OptionsOf(plan_.options), kOfBoth, options);
    options.Group("");
  }

  // Options that edit recorded jobs too.
  static constexpr auto kOfBoth = std::to_array<std::string_view>(
      {"--layers", "--dp", "--tp", "--pp", "--micro-batches", "--schedule", "--bucket",
       "--first-bucket", "--batch", "--sequence", "--hidden", "--heads", "--ffn", "--vocab"});
  static constexpr std::string_view kKeepsRankBatch = "rank-batch";

  // Takes the edits of the file.
  Status ReadEdits(const Limits& limits) {
    if (job_.what_if != WhatIfOptions{.measure = job_.what_if.measure} || !plan_.empty() ||
        keep_ != kKeepsRankBatch) {
      return MakeError(ErrorCode::kUsage,
                       "whatif: found edits besides --edits, expected all of them in its file");
    }
    Options options(name(), summary());
    DeclareRecordedEdits(options);
    DeclareEditsOfPlans(options);
    const std::vector<std::string_view> paths(kRecordedEditPaths.begin(), kRecordedEditPaths.end());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<PlacedOption> edits,
                           ReadEditsFile(edits_file_, options, paths, limits));
    for (const PlacedOption& edit : edits) {
      const Options::Parsed parsed = options.Parse(edit.words);
      if (parsed.outcome != Options::Outcome::kRun) {
        return BadInput(fmt::format("{}: {}", edit.place, parsed.text));
      }
    }
    if (edits.empty()) {
      return BadInput(edits_file_ + ": found no edit, expected one, such as layers = 12");
    }
    return {};
  }

  // Edits a generated job by its plan, and returns whether it is one.
  Result<bool> EditPlan(const Console& console) {
    plan_.keep = keep_ == "global-batch" ? KeptBatch::kGlobal : KeptBatch::kRank;
    const bool is_of_plans = !plan_.empty() || plan_.keep == KeptBatch::kGlobal;
    const WhatIfOptions& recorded = job_.what_if;
    PlanEdits edits = plan_;
    edits.options.options.layers = recorded.layers;
    edits.options.options.plan.data = recorded.data_parallel;
    edits.options.options.plan.tensor = recorded.tensor_parallel;
    edits.options.options.plan.stages = recorded.pipeline.stages;
    edits.options.options.plan.micro_batches = recorded.pipeline.micro_batches;
    edits.options.options.batch = recorded.dimensions.batch;
    edits.options.options.sequence = recorded.dimensions.sequence;
    edits.options.options.hidden = recorded.dimensions.hidden;
    edits.options.options.heads = recorded.dimensions.heads;
    edits.options.options.ffn = recorded.dimensions.ffn;
    edits.options.options.vocabulary = recorded.dimensions.vocabulary;
    if (!recorded.pipeline.schedule.empty()) {
      edits.options.options.schedule = recorded.pipeline.schedule;
    }
    if (!recorded.bucket.empty()) edits.options.options.bucket = recorded.bucket;
    if (!recorded.first_bucket.empty()) edits.options.options.first_bucket = recorded.first_bucket;
    if (edits.empty() && !is_of_plans) return false;
    if (plan_.keep == KeptBatch::kGlobal && !recorded.data_parallel) {
      return MakeError(ErrorCode::kUsage, "whatif: --keep global-batch requires --dp");
    }
    WhatIfOptions others = recorded;
    others.layers = others.data_parallel = others.tensor_parallel = std::nullopt;
    others.pipeline = {};
    others.dimensions = {};
    others.bucket = others.first_bucket = "";
    if (others != WhatIfOptions()) {
      if (!is_of_plans) return false;
      return MakeError(ErrorCode::kUsage,
                       "whatif: edits of a plan cannot be combined with edits of recorded jobs");
    }
    ETUDE_ASSIGN_OR_RETURN(const std::optional<EditedJob> edited,
                           EditGeneratedJob(job_.paths, edits, output_, console.context()));
    if (!edited && is_of_plans) return NotGenerated(job_.paths.front(), plan_);
    if (!edited) return false;
    if (!capacity_text_.empty()) {
      console.context().Warn(
          "--capacity has no effect: the memory of a generated job is compared to its --device");
    }
    console.Print(json_ ? JsonText(ToJson(*edited, job_.paths)) : ToText(*edited, output_));
    return true;
  }

  MakeOperatorMeasurer* make_measurer_;
  SimJobOptions job_;
  PlanEdits plan_;
  std::string keep_{kKeepsRankBatch};
  std::string edits_file_;
  std::string capacity_text_;
  std::optional<DeviceCapacity> capacity_;
  std::string output_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeWhatIfCommand() { return std::make_unique<WhatIfCommand>(nullptr); }
std::unique_ptr<Command> MakeMeasuringWhatIfCommand(MakeOperatorMeasurer* measurer) {
  return std::make_unique<WhatIfCommand>(measurer);
}

}  // namespace etude
