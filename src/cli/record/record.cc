#include "src/cli/app/commands.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/analysis/time/time_summary.h"
#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/base/version.h"
#include "src/cli/app/installation.h"
#include "src/cli/record/recording_folder.h"
#include "src/cli/tool/child_process.h"
#include "src/cli/tool/interpreter.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_json.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Medians {
  std::optional<Nanos> wall;
  std::optional<Nanos> cpu;
};

// Returns the medians of the timed steps of one signature.
Medians MediansOf(const JobRank& rank, const std::string& signature) {
  std::vector<Nanos> wall;
  std::vector<Nanos> cpu;
  for (const StepTime& step : rank.timed_steps) {
    if (step.signature != signature) continue;
    wall.push_back(step.wall);
    cpu.push_back(step.cpu);
  }
  return {Median(std::move(wall)), Median(std::move(cpu))};
}

Json Milliseconds(const std::optional<Nanos>& time) {
  return time ? Json(time->ms()) : Json(nullptr);
}

std::string TimeText(const std::optional<Nanos>& time) {
  return time ? FormatTime(*time) : "not timed";
}

Json RankJson(int64_t number, const JobRank& rank) {
  Json json = {{"rank", number}, {"step_kind", rank.step_kind}};
  Json signatures = Json::array();
  for (const StepSignature& signature : rank.signatures) {
    const Medians medians = MediansOf(rank, signature.id);
    signatures.push_back({{"id", signature.id},
                          {"description", signature.description},
                          {"seen", signature.seen},
                          {"timed", signature.timed},
                          {"recorded", signature.recorded},
                          {"median_wall_ms", Milliseconds(medians.wall)},
                          {"median_cpu_ms", Milliseconds(medians.cpu)}});
  }
  json["signatures"] = std::move(signatures);
  json["notes"] = rank.notes;
  return json;
}

std::string RankText(int64_t number, const JobRank& rank) {
  constexpr size_t kShown = 8;
  constexpr size_t kWidth = 70;
  std::string text = fmt::format("rank {}: a step ends with {} marks\n", number, rank.step_kind);
  std::vector<StepSignature> signatures = rank.signatures;
  std::ranges::stable_sort(signatures, std::ranges::greater(), &StepSignature::timed);
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kLeft});
  table.Row({"", "steps of this kind", "seen", "timed", "wall", "CPU", ""});
  for (size_t i = 0; i < std::min(kShown, signatures.size()); ++i) {
    const StepSignature& signature = signatures[i];
    const Medians medians = MediansOf(rank, signature.id);
    table.Row({signature.id, ShortText(signature.description, kWidth), FormatCount(signature.seen),
               FormatCount(signature.timed), TimeText(medians.wall), TimeText(medians.cpu),
               signature.recorded ? "recorded" : ""});
  }
  text += table.Text();
  if (signatures.size() > kShown) {
    text += fmt::format("  and {} more\n", signatures.size() - kShown);
  }
  for (const std::string& note : rank.notes) text += "  note: " + note + "\n";
  return text;
}

// Returns the ranks of the world that the job lacks.
std::vector<int64_t> MissingRanks(const JobFile& job) {
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < job.world_size.value_or(0); ++rank) {
    if (!job.ranks.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

class RecordCommand : public Command {
 public:
  std::string_view name() const override { return "record"; }
  std::string_view summary() const override {
    return "run a PyTorch program, time its steps and record one";
  }

  void Declare(Options& options) override {
    options.Output("-o,--output", &output_, "DIR", "capture folder to write", {});
    options.Value("--warmup", &warmup_, "N", "number of warm-up steps before the first timed step",
                  {.least = 0});
    options.Value("--steps", &steps_, "N", "number of timed steps, run without instrumentation",
                  {.least = 1});
    options.Value("--record-steps", &record_steps_, "N", "number of consecutive steps to record",
                  {.least = 1});
    options.Value("--kinds", &kinds_, "N|auto",
                  "record until the N kinds of steps with the most time are covered; auto: until "
                  "90 % of the time is covered");
    options.Choice("--step", &kind_, {"auto", "optimizer", "module", "profiler"},
                   "event that ends a step");
    options.Choice("--integer-ranges", &ranges_, {"auto", "on", "off"},
                   "record minimum and maximum of integer inputs (auto: on the CPU only)");
    options.Choice("--recorder", &recorder_, {"auto", "observers", "native"},
                   "recorder to use: Etude's native one or PyTorch's observers (auto: native if it "
                   "is built for the program's torch)");
    options.Value("--index-values", &index_values_, "BYTES",
                  "record all values of index tensors, up to BYTES (native recorder)");
    options.Choice("--modules", &modules_, {"on", "off"},
                   "record labels for module calls (native recorder)");
    options.Choice("--callback-cost", &callback_cost_, {"subtract", "keep"},
                   "overhead of the native recorder: subtract it from the times, or keep it");
    options.Flag("--eager", &eager_, "disable torch.compile");
    options.Flag("--memory", &memory_, "record allocations and frees of memory allocators");
    options.Flag("--force", &force_, "replace an existing capture");
    options.Value("--summary", &summary_file_, "FILE", "write a summary of the recording as JSON");
    options.Value("--print-environment", &duty_, "SETTINGS",
                  "print environment variables that record a program without `etude record`, for "
                  "ETUDE_RECORD=SETTINGS");
    options.Value("--build-recorder", &build_for_, "PYTHON",
                  "only build the native recorder for the torch of this Python, then exit");
    options.Rest("command", &command_, "program and arguments");
    options.Footer(
        "The program runs unchanged: standard streams, signals and exit code pass through.\nIf it "
        "succeeds but no step was recorded, the exit code is 1.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::string python, PythonFolder());
    if (!duty_.empty()) return PrintEnvironment(console, python);
    if (!build_for_.empty()) return BuildRecorder(python);
    ETUDE_RETURN_IF_ERROR(Check());
    ETUDE_ASSIGN_OR_RETURN(RecordingFolder folder, RecordingFolder::Open(output_, force_));
    ETUDE_RETURN_IF_ERROR(folder.LeaveCommand(command_));
    if (recorder_ == "native") PrepareRecorder(console, python);
    ETUDE_ASSIGN_OR_RETURN(const Variables variables, Environment(python, folder.staging()));
    ETUDE_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(command_, variables));
    // The reader of the output may have gone; the capture is published in any case.
    std::signal(SIGPIPE, SIG_IGN);
    return Finish(console, end, folder);
  }

 private:
  Status Check() const;
  Result<ExitCode> PrintEnvironment(const Console& console, const std::string& python) const;
  Result<ExitCode> BuildRecorder(const std::string& python) const;
  void PrepareRecorder(const Console& console, const std::string& python) const;
  Result<Variables> Environment(const std::string& python, const std::string& folder) const;
  Result<ExitCode> Finish(const Console& console, const ChildEnd& end,
                          RecordingFolder& folder) const;
  Result<bool> Report(const Console& console, const ChildEnd& end, RecordingFolder& folder,
                      Json& summary) const;
  void Explain(const NoCapture& why, Json& summary) const;

  std::string output_;
  int64_t warmup_ = 5;
  int64_t steps_ = 20;
  int64_t record_steps_ = 1;
  std::string kinds_ = "1";
  std::string kind_ = "auto";
  std::string ranges_ = "auto";
  std::string recorder_ = "auto";
  bool force_ = false;
  bool memory_ = false;
  std::string modules_ = "on";
  std::string callback_cost_ = "subtract";
  bool eager_ = false;
  std::string index_values_ = "0";
  std::string summary_file_;
  std::string duty_;
  std::string build_for_;
  std::vector<std::string> command_;
};

Status RecordCommand::Check() const {
  if (output_.empty()) {
    return MakeError(ErrorCode::kUsage, "record: missing -o DIR, the capture folder to write");
  }
  const std::optional<Bytes> values = ParseBytes(index_values_);
  if (!values || values->count < 0) {
    return MakeError(ErrorCode::kUsage, "record: --index-values: found '" + index_values_ +
                                            "', expected bytes, such as 64MiB");
  }
  const std::optional<int64_t> kinds = ParseWhole(kinds_);
  if (kinds_ != "auto" && kinds.value_or(0) < 1) {
    return MakeError(ErrorCode::kUsage, "record: --kinds: found '" + kinds_ +
                                            "', expected a whole number >= 1, or auto");
  }
  if (IsFolder(summary_file_)) {
    return MakeError(ErrorCode::kUsage, "record: --summary: " + summary_file_ + " is a folder");
  }
  if (command_.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "record: missing program, expected `etude record -o DIR -- python ...`");
  }
  return {};
}

Result<ExitCode> RecordCommand::BuildRecorder(const std::string& python) const {
  ETUDE_ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChild(PythonCall(WheelPython().value_or("python3"), python, "torch_tool",
                          "etude.torch_tool.build_recorder(sys.argv[1])", {build_for_}),
               {}));
  return static_cast<ExitCode>(end.exit_code());
}

// Builds the native recorder if the installed one does not fit the program's torch. If this fails,
// the program is recorded by the observers.
void RecordCommand::PrepareRecorder(const Console& console, const std::string& python) const {
  const std::string fits = RecorderLibrary().empty() ? "" : std::string(kRecorderTorch);
  const std::optional<std::string> interpreter = PythonOf(command_.front());
  if (!interpreter) return;
  const auto end = RunChild(PythonCall(*interpreter, python, "torch_tool",
                                       "etude.torch_tool.prepare_recorder(sys.argv[1])", {fits}),
                            {});
  if (!end || end->exit_code() != 0) {
    console.Say("etude: no native recorder for this program; recording with PyTorch's observers");
  }
}

// Prints lines for a shell: the settings, and the start-up hook that reads them.
Result<ExitCode> RecordCommand::PrintEnvironment(const Console& console,
                                                 const std::string& python) const {
  if (!command_.empty() || !output_.empty()) {
    return MakeError(
        ErrorCode::kUsage,
        "record: --print-environment: expected neither --output nor a program, found " +
            (output_.empty() ? command_.front() : "--output"));
  }
  // If no Python is found, the program's own checks the settings.
  const auto check =
      RunChild(PythonCall(WheelPython().value_or("python3"), python, "recording.duty_settings",
                          "sys.exit(etude.recording.duty_settings.main())", {duty_}),
               {});
  if (check && check->exit_code() == static_cast<int>(ExitCode::kUsage)) return ExitCode::kUsage;
  std::string settings = duty_;
  const std::string library = RecorderLibrary();
  if (duty_.find("library=") == std::string::npos && !library.empty()) {
    settings += ",library=" + library;
  }
  console.Print(
      fmt::format("export ETUDE_RECORD={}\nexport ETUDE_RECORD_VERSION={}\n"
                  "export PYTHONPATH={}\"${{PYTHONPATH:+:$PYTHONPATH}}\"\n",
                  ShellQuoted(settings), kVersion, ShellQuoted(HookFolder(python))));
  return ExitCode::kOk;
}

Result<Variables> RecordCommand::Environment(const std::string& python,
                                             const std::string& folder) const {
  ETUDE_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(folder));
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  Variables variables = {
      {"PYTHONPATH", HookPath(python)},
      {"ETUDE_RECORD_DIR", absolute},
      {"ETUDE_RECORD_WARMUP", std::to_string(warmup_)},
      {"ETUDE_RECORD_STEPS", std::to_string(steps_)},
      {"ETUDE_RECORD_RECORD_STEPS", std::to_string(record_steps_)},
      {"ETUDE_RECORD_KINDS", kinds_},
      {"ETUDE_RECORD_KIND", kind_},
      {"ETUDE_RECORD_RANGES", ranges_},
      {"ETUDE_RECORD_RECORDER", recorder_},
      {"ETUDE_RECORD_LIBRARY", RecorderLibrary()},
      {"ETUDE_RECORD_MODULES", modules_ == "on" ? "1" : "0"},
      {"ETUDE_RECORD_CALLBACK_COST", callback_cost_ == "subtract" ? "1" : "0"},
      {"ETUDE_RECORD_INDEX_VALUES", std::to_string(ParseBytes(index_values_)->count)},
      {"ETUDE_RECORD_MEMORY", memory_ ? "1" : "0"},
      {"ETUDE_RECORD_JOB", fmt::format("{:x}-{:x}", now, getpid())},
      {"ETUDE_RECORD_VERSION", std::string(kVersion)}};
  if (eager_) {
    variables.emplace_back("TORCH_COMPILE_DISABLE", "1");
    variables.emplace_back("TORCHDYNAMO_DISABLE", "1");
  }
  return variables;
}

Result<ExitCode> RecordCommand::Finish(const Console& console, const ChildEnd& end,
                                       RecordingFolder& folder) const {
  Json summary = {{"format", "etude-record-summary"},
                  {"version", 1},
                  {"output", output_},
                  {"command", command_},
                  {"exit_code", end.exit_code()}};
  bool recorded = false;
  if (folder.has_new()) {
    ETUDE_ASSIGN_OR_RETURN(recorded, Report(console, end, folder, summary));
  } else {
    const NoCapture why =
        ExplainNoCapture(folder.staging(), ReadStatuses(folder.staging()), end.killed);
    summary["captured"] = false;
    Explain(why, summary);
    console.Complain("nothing was recorded: " + why.reason);
    if (!why.remedy.empty()) console.Complain(why.remedy);
  }
  if (!recorded && folder.has_earlier()) {
    console.Complain(output_ + ": the earlier capture is unchanged");
  }
  if (!summary_file_.empty()) {
    ETUDE_RETURN_IF_ERROR(WriteFile(summary_file_, JsonText(summary)));
  }
  if (end.exit_code() != 0) return static_cast<ExitCode>(end.exit_code());
  return recorded ? ExitCode::kOk : ExitCode::kNo;
}

// Prints a summary and publishes the recording. Returns false if ranks are missing; it then does
// not replace an earlier capture.
Result<bool> RecordCommand::Report(const Console& console, const ChildEnd& end,
                                   RecordingFolder& folder, Json& summary) const {
  ETUDE_ASSIGN_OR_RETURN(const JobFile job,
                         ReadJobFile(folder.staging() + "/job.json", console.context()));
  const std::vector<int64_t> missing = MissingRanks(job);
  summary["captured"] = missing.empty();
  summary["world_size"] = OrNull(job.world_size);
  summary["missing_ranks"] = missing;
  Json ranks = Json::array();
  for (const auto& [number, rank] : job.ranks) ranks.push_back(RankJson(number, rank));
  summary["ranks"] = std::move(ranks);

  if (!missing.empty()) {
    console.Complain(fmt::format("{} of {} ranks are missing, for example rank {}", missing.size(),
                                 *job.world_size, missing.front()));
    Explain(ExplainNoCapture(folder.staging(), ReadStatuses(folder.staging()), end.killed),
            summary);
    if (folder.has_earlier()) return false;
  }
  const auto early = std::ranges::count_if(
      job.ranks, [](const auto& entry) { return entry.second.recorded_early; });
  summary["early"] = early > 0;
  if (early > 0 && early < std::ssize(job.ranks)) {
    console.Complain(
        fmt::format("{} of {} ranks ended before a step after the warm-up was recorded: ranks "
                    "recorded different steps",
                    early, job.ranks.size()));
  }
  if (early > 0 && end.exit_code() != 0 && folder.has_earlier()) {
    console.Complain("the program failed before a step after the warm-up was recorded");
    return false;
  }
  ETUDE_RETURN_IF_ERROR(folder.Publish());

  constexpr size_t kShownRanks = 2;
  console.Say(
      fmt::format("etude: recorded {} into {}", FormatCount(job.ranks.size(), "rank"), output_));
  size_t shown = 0;
  for (const auto& [number, rank] : job.ranks) {
    if (++shown > kShownRanks) break;
    std::string text = RankText(number, rank);
    text.erase(text.find_last_not_of('\n') + 1);
    console.Say(text);
  }
  if (job.ranks.size() > kShownRanks) {
    console.Say(fmt::format("and {} more ranks", job.ranks.size() - kShownRanks));
  }
  return missing.empty();
}

void RecordCommand::Explain(const NoCapture& why, Json& summary) const {
  summary["reason"] = {{"code", why.code}, {"text", why.reason}, {"remedy", why.remedy}};
}

}  // namespace

std::unique_ptr<Command> MakeRecordCommand() { return std::make_unique<RecordCommand>(); }

}  // namespace etude
