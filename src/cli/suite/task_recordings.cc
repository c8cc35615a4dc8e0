#include "src/cli/suite/task_recordings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/folder_names.h"
#include "src/cli/app/installation.h"
#include "src/cli/record/compare_run.h"
#include "src/cli/suite/program_output.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/output_files.h"
#include "src/suite/results/run_record.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using suite::TaskFacts;

// Folders that commands with recordings of tasks write.
constexpr std::array kOwnFolders = {"recordings", "benchmarks", "certificates"};

}  // namespace

void TaskRecordings::Declare(Options& options, std::string_view content) {
  constexpr int64_t kMost = 1'000'000;
  options.Output("-o,--output", &output_, "FOLDER",
                 fmt::format("folder for {}; existing ones are not repeated", content), {});
  options.Required("--output");
  options.Choice("--scale", &settings.scale, {"smoke", "paper"},
                 "smoke: a small task of a minute; paper: the published task");
  options.Value("--seed", &settings.seed, "N", "seed of the recorded run", {.least = 0});
  options.Value("--batch", &settings.batch, "N",
                "global batch size: samples per step over all recorded ranks",
                {.least = 1, .most = kMost});
  options.Value("--threads", &settings.threads, "N", "number of threads in PyTorch's pool per rank",
                {.least = 1, .most = 1024});
  options.Value("--device", &settings.device, "DEVICE",
                "cpu, cuda:N, or the name of another PyTorch device");
  options.Values("--library", &settings.libraries, "FILE",
                 "load a shared library, for example for a device; its code runs");
  options.Choice("--precision", &settings.precision, {"fp32", "bf16", "fp16"},
                 "precision of operators; weights are float32");
  options.Value("--data", &settings.data, "FOLDER",
                "folder with the data sets (default: $ETUDE_SUITE_DATA, else "
                "~/.cache/etude/suite)");
}

std::string TaskRecordings::FolderOf(const TaskFacts& task) const {
  return fmt::format("{}/recordings/{}", output_, task.id);
}

std::vector<std::string> TaskRecordings::CommandFor(const TaskFacts& task) const {
  NamedTexts texts;
  if (settings.batch) texts["batch"] = std::to_string(*settings.batch);
  if (settings.threads) texts["threads"] = std::to_string(*settings.threads);
  return CommandOf(suite::RunRecord{.task = std::string(task.id),
                                    .scale = settings.scale,
                                    .seed = settings.seed,
                                    .device = settings.device,
                                    .precision = settings.precision,
                                    .ranks = settings.ranks,
                                    .settings = texts});
}

std::vector<std::string> TaskRecordings::CommandHere(const TaskFacts& task) const {
  std::vector<std::string> words = CommandFor(task);
  words.front() = ProgramPath();
  if (!settings.data.empty()) words.insert(words.end(), {"--data", settings.data});
  AddLibraries(words);
  return words;
}

void TaskRecordings::AddLibraries(std::vector<std::string>& words) const {
  for (const std::string& library : settings.libraries) {
    words.insert(words.end(), {"--library", library});
  }
}

Status TaskRecordings::CheckFolder(const std::vector<const TaskFacts*>& tasks,
                                   const RunContext& context) const {
  std::error_code error;
  if (!fs::exists(output_, error)) return {};
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(output_));
  const bool is_own = std::ranges::any_of(
      names, [](const std::string& name) { return std::ranges::count(kOwnFolders, name) != 0; });
  if (!names.empty() && !is_own) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: found other files, expected a new folder, or one that "
                                 "`etude suite benchmark` or `etude suite simulate` wrote",
                                 output_));
  }
  for (const TaskFacts* task : tasks) {
    const Result<std::optional<JobFile>> found = Find(*task, context.Unwarned());
    if (!found || !*found) continue;  // an unreadable recording fails its task only, in its turn
    const JobFile& job = **found;
    const std::vector<std::string> command = CommandFor(*task);
    if (job.command == command) continue;
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: found a recording of `{}`, expected `{}`; use another --output",
                    FolderOf(*task), ShellLine(job.command), ShellLine(command)));
  }
  return {};
}

Status TaskRecordings::MakeFolders(const std::vector<std::string>& folders) const {
  for (const std::string& folder : folders) {
    ETUDE_RETURN_IF_ERROR(MakeFolder(fmt::format("{}/{}", output_, folder)));
  }
  return {};
}

Result<std::optional<JobFile>> TaskRecordings::Find(const TaskFacts& task,
                                                    const RunContext& context) const {
  const std::string path = FolderOf(task) + "/" + std::string(kJobFile);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  ETUDE_ASSIGN_OR_RETURN(JobFile job, ReadJobFile(path, context));
  return std::optional(std::move(job));
}

Status TaskRecordings::Record(const TaskFacts& task, const TaskLoop& loop,
                              const Console& console) const {
  std::vector<std::string> words = CommandHere(task);
  words.insert(words.end(),
               {"--record", output_ + "/recordings", "--warmup", std::to_string(settings.warmup),
                "--iterations", std::to_string(settings.iterations)});
  if (!console.context().warn) words.emplace_back("--quiet");
  return RunPart(loop, words, "recording a step");
}

}  // namespace etude
