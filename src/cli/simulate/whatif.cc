#include "src/cli/simulate/whatif.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/app/commands.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/job_classes.h"
#include "src/jobs/output_files.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/what_if.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

class WhatIfCommand : public Command {
 public:
  // `measurer`: null in the program without libtorch.
  explicit WhatIfCommand(MakeOperatorMeasurer* measurer) : make_measurer_(measurer) {}

  std::string_view name() const override { return "whatif"; }
  std::string_view summary() const override {
    return "edit a recorded job: other sizes, layers, ranks and times";
  }

  void Declare(Options& options) override {
    options.Positionals("job", &job_.paths,
                        "capture folder, or traces of all ranks, recorded by Etude or PyTorch");
    options.Output("-o,--output", &output_, "FOLDER", "folder for the edited job", {});
    options.Required("--output");
    options.Value("--second", &job_.what_if.second, "JOB",
                  "recording of the same program with another size, such as its batch");
    options.Value("--sizes", &job_.what_if.sizes, "FIRST,SECOND,WANTED",
                  "this size in the job and in --second, and the wanted one, such as 8,16,64");
    options.Value("--layers", &job_.what_if.layers, "N",
                  "number of equal layers of the model, such as blocks of a transformer");
    options.Value("--dp", &job_.what_if.data_parallel, "N",
                  "number of data-parallel ranks; the batch of each rank stays");
    options.Value(
        "--bucket", &job_.what_if.bucket, "SIZE",
        "--dp of a job of one rank: size of gradient buckets, as bucket_cap_mb (default: 25MiB, "
        "and 1MiB for the first)");
    options.Value(
        "--first-bucket", &job_.what_if.first_bucket, "SIZE",
        "--dp of a job of one rank: size of the first bucket of a backward pass (default: as "
        "--bucket, or 1MiB)");
    options.Value("--scale", &job_.what_if.scale, "WHAT=FACTOR,…",
                  "multiply times of compute, matrix, host or an operator, such as "
                  "matrix=0.5,aten::gelu=2");
    options.Values("--drop", &job_.what_if.drop, "OPERATOR",
                   "set the own time of an operator to 0, without the operators that it calls");
    options.Value("--operators", &job_.what_if.operators, "FILE",
                  "table of measured operators (etude calibrate --operators): for the operators "
                  "with other sizes, or without --sizes for all");
    options.Value("--recorded-operators", &job_.what_if.recorded_operators, "FILE",
                  "with --operators of another machine: table of the machine of the recording");
    options.Flag("--measure", &job_.what_if.measure,
                 "measure the operators with other sizes on this machine, and add them to the "
                 "table of --operators, if any");
    options.Flag("--with-recording", &job_.with_recording,
                 "keep the recording overhead in the times");
    options.Jobs(&job_.jobs, "traces");
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (job_.what_if.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "whatif: missing edit: --sizes, --layers, --dp, --scale, --drop or "
                       "--operators");
    }
    ETUDE_RETURN_IF_ERROR(CheckNoTraces(output_, console.context()));
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
      notes.insert(notes.begin(),
                   fmt::format("{} of recording overhead subtracted from each step, of {}",
                               FormatTime(read.recording_taken),
                               FormatTime(read.recorded_step.value_or(Nanos{}))));
    }
    const Changes changes{.sources = job_.paths,
                          .ranks = counts.ranks,
                          .times_known = read.workload.rounded_times,
                          .edits = read.edits,
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
    for (const std::string& note : notes) text += "note: " + note + "\n";
    console.Print(fmt::format("{}wrote {}: {}\n", text, output_, ClassesText(counts)));
    return ExitCode::kOk;
  }

 private:
  MakeOperatorMeasurer* make_measurer_;
  SimJobOptions job_;
  std::string output_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeWhatIfCommand() { return std::make_unique<WhatIfCommand>(nullptr); }
std::unique_ptr<Command> MakeMeasuringWhatIfCommand(MakeOperatorMeasurer* measurer) {
  return std::make_unique<WhatIfCommand>(measurer);
}

}  // namespace etude
