#include "src/cli/simulate/sweep_jobs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/exit_code.h"
#include "src/base/open_file.h"
#include "src/base/sha256.h"
#include "src/base/text/folder_names.h"
#include "src/base/version.h"
#include "src/cli/app/installation.h"
#include "src/cli/app/job_in_making.h"
#include "src/cli/simulate/sweep_generate.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/output_files.h"
#include "src/jobs/plan_file.h"
#include "src/sim/program/workload.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

// Patterns and models in text have no classes: they are files, called so.
constexpr const char* kGeneratedPrefix = "job";
bool HasClasses(const std::string& what) { return what != "microbench" && what != "text"; }

Status AddFile(const std::string& name, const std::string& path, const Limits& limits,
               std::string& listing) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, limits, limits.total_bytes));
  listing += fmt::format("{} {}\n", Sha256(bytes), name);
  return {};
}

// In the folder of a generated job: tells whether it is the one that was made.
constexpr std::string_view kCheckFile = "check";

// What became of a program that was run.
struct Ended {
  int code = 0;
  std::string said;  // its errors
};

// Runs `words` without output. The program holds the file `lock` as long as it lives.
Result<Ended> RunSilently(std::vector<std::string> words, int lock) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", words[0], std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, lock, lock);  // stays open
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(errors[1]);
  Ended ended;
  if (failed == 0) ended.said = ReadAll(errors[0]);
  close(errors[0]);
  if (failed != 0) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", words[0], std::strerror(failed)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

// What it is to a sweep that `etude generate` ended with this exit code.
ErrorCode ErrorOfGenerate(int code) {
  if (code == static_cast<int>(ExitCode::kUsage) || code == static_cast<int>(ExitCode::kBadInput))
    return ErrorCode::kBadInput;
  return code == static_cast<int>(ExitCode::kIo) ? ErrorCode::kIo : ErrorCode::kUnavailable;
}

// What a program said last, without its name.
std::string LastLine(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  constexpr std::string_view kName = "etude: ";
  if (text.starts_with(kName)) text.erase(0, kName.size());
  return text;
}

}  // namespace

Result<std::string> HashOfPrefix(const std::string& prefix, int64_t ranks, const Limits& limits) {
  std::string listing;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ETUDE_RETURN_IF_ERROR(AddFile("rank", RankFileOf(prefix, rank), limits, listing));
  }
  return Sha256(listing);
}

void SweepJobs::RemoveAbandoned() const { JobInMaking::RemoveAbandoned(jobs_folder()); }

Status SweepJobs::Add(const std::string& name, const std::string& file, std::string& listing) {
  files_.insert(file);
  return AddFile(name, file, console_.context().limits, listing);
}

Result<std::string> SweepJobs::HashOf(const SweepPoint& point, int64_t npus) {
  const SweepJobSource& source = point.job;
  if (source.generate.empty()) {
    std::string& hash = hashes_[{source, npus}];
    if (!hash.empty()) return hash;
    ETUDE_ASSIGN_OR_RETURN(hash, HashFiles(source, npus));
    return hash;
  }
  // By words: numbers that are equal may be written in ways of which not all are right.
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  std::string& hash = generated_hashes_[call.words];
  if (!hash.empty()) return hash;
  std::string text = "generate\n";
  for (const std::string& word : call.words) {
    if (!call.places.contains(word)) {
      text += word + "\n";
    } else {
      ETUDE_RETURN_IF_ERROR(Add("", word, text));
    }
  }
  hash = Sha256(text);
  return hash;
}

Result<std::string> SweepJobs::HashFiles(const SweepJobSource& source, int64_t npus) {
  const std::string& path = source.path;
  std::string groups = source.groups;
  std::string listing;
  if (IsJobFolder(path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
    for (const std::string& name : names) {
      if (!name.starts_with("class") && name != kPlanFile) continue;
      ETUDE_RETURN_IF_ERROR(Add(name, path + "/" + name, listing));
    }
  } else if (IsFolder(path)) {
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, console_.context()));
    std::vector<std::string> traces;
    for (const CaptureRank& rank : folder.ranks) {
      traces.push_back(RichestInput(rank).path);
      for (const std::string& file : rank.files()) {
        ETUDE_RETURN_IF_ERROR(Add(fs::path(file).filename().string(), file, listing));
      }
    }
    if (groups.empty()) groups = GroupsBeside(traces);
  } else if (IsThere(path)) {
    ETUDE_RETURN_IF_ERROR(Add("trace", path, listing));
    if (groups.empty()) groups = GroupsBeside({path});
  } else {
    // As many as there are, and whether there is one too many.
    int64_t ranks = 0;
    while (ranks <= npus && IsThere(RankFileOf(path, ranks))) ++ranks;
    const int64_t read = std::clamp<int64_t>(ranks, 1, npus);
    ETUDE_ASSIGN_OR_RETURN(listing, HashOfPrefix(path, read, console_.context().limits));
    for (int64_t rank = 0; rank < read; ++rank) files_.insert(RankFileOf(path, rank));
    if (ranks > npus) listing += "more\n";
    if (groups.empty()) groups = GroupsBeside({RankFileOf(path, 0)});
  }
  if (!groups.empty()) ETUDE_RETURN_IF_ERROR(Add("groups", groups, listing));
  // Strictly read, a job may be refused that is not else.
  return Sha256(fmt::format("{}{} {}{}", listing, source.compute, source.fill_ranks,
                            console_.strict() ? " strict" : ""));
}

Result<std::shared_ptr<const SimJob>> SweepJobs::Read(const SweepPoint& point,
                                                      const std::string& hash, int64_t npus,
                                                      const RunContext& context) {
  const SweepJobSource& source = point.job;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& found = slots_[fmt::format("{} {}", hash, npus)];
    if (found == nullptr) found = std::make_unique<Slot>();
    slot = found.get();
  }
  const std::lock_guard lock(slot->mutex);
  if (auto job = slot->job.lock()) return job;
  std::string path = source.path;
  if (!source.generate.empty()) {
    ETUDE_ASSIGN_OR_RETURN(path, Generate(point, hash, context));
  }
  SimJobOptions options;
  options.paths = {path};
  options.groups = source.groups;
  options.compute = source.compute;
  options.fill_ranks = source.fill_ranks;
  options.jobs = 1;
  Result<SimJob> read = ReadSimJob(options, npus, console_.strict(), context);
  if (!read && !source.generate.empty() && !IsWhole(FolderOf(hash), hash)) {
    return MakeError(ErrorCode::kIo, FolderOf(hash) + ": was changed while it was read");
  }
  if (!read) return tl::unexpected<Error>(read.error());
  auto job = std::make_shared<const SimJob>(*std::move(read));
  slot->job = job;
  return job;
}

Result<std::string> SweepJobs::Generate(const SweepPoint& point, const std::string& hash,
                                        const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  const std::string folder = FolderOf(hash);
  const bool has_classes = HasClasses(call.words.front());
  const std::string path = has_classes ? folder : fmt::format("{}/{}", folder, kGeneratedPrefix);
  if (IsThere(folder)) {
    if (IsWhole(folder, hash)) return path;
    context.Warn(fmt::format("{}: is damaged, the job is generated again", folder));
  }
  const std::string jobs = jobs_folder();
  ETUDE_RETURN_IF_ERROR(CheckNoLink(jobs));
  ETUDE_RETURN_IF_ERROR(MakeFolder(jobs));
  // Complete or not at all: made beside, then renamed.
  ETUDE_ASSIGN_OR_RETURN(const JobInMaking making,
                         JobInMaking::Begin(jobs, fs::path(folder).filename().string()));
  const std::string made = making.folder();
  std::vector<std::string> words = {ProgramPath(), "generate"};
  words.insert(words.end(), call.words.begin(), call.words.end());
  words.insert(words.end(),
               {"-o", has_classes ? made : fmt::format("{}/{}", made, kGeneratedPrefix)});
  if (has_classes) words.insert(words.end(), {"--to", "classes"});
  ETUDE_ASSIGN_OR_RETURN(const Ended ended, RunSilently(std::move(words), making.lock()));
  if (ended.code == 0) {
    PassWarnings(ended.said, point.name, context);
    ETUDE_RETURN_IF_ERROR(Place(made, folder, hash));
    return path;
  }
  if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
  const std::string message =
      ended.said.empty() ? fmt::format("exit code {}", ended.code) : LastLine(ended.said);
  return MakeError(ErrorOfGenerate(ended.code), "etude generate: " + message);
}

Result<std::string> SweepJobs::CheckOf(const std::string& folder, const std::string& hash) const {
  std::string listing = fmt::format("{} {}\n", kVersion, hash);
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (name == kCheckFile) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    ETUDE_RETURN_IF_ERROR(AddFile(name, path, console_.context().limits, listing));
  }
  return Sha256(listing) + "\n";
}

std::string SweepJobs::FolderOf(const std::string& hash) const {
  return fmt::format("{}/{}", jobs_folder(), hash.substr(0, 16));
}

bool SweepJobs::IsWhole(const std::string& folder, const std::string& hash) const {
  const std::string check = fmt::format("{}/{}", folder, kCheckFile);
  if (!CheckRegular(check)) return false;
  const auto said = ReadWholeFile(check, console_.context().limits);
  const auto is = CheckOf(folder, hash);
  return said && is && *said == *is;
}

Status SweepJobs::Place(const std::string& made, const std::string& folder,
                        const std::string& hash) const {
  ETUDE_ASSIGN_OR_RETURN(const std::string check, CheckOf(made, hash));
  ETUDE_RETURN_IF_ERROR(WriteFile(fmt::format("{}/{}", made, kCheckFile), check));
  std::error_code error;
  fs::rename(made, folder, error);
  // By another shard, or a damaged one.
  if (!error || IsWhole(folder, hash)) return {};
  fs::remove_all(folder, error);
  fs::rename(made, folder, error);
  if (!error || IsWhole(folder, hash)) return {};
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", folder, error.message()));
}

void SweepJobs::PassWarnings(const std::string& said, const std::string& name,
                             const RunContext& context) {
  constexpr std::string_view kWarning = "etude: warning: ";
  std::string_view rest = said;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with(kWarning)) continue;
    line.remove_prefix(kWarning.size());
    {
      const std::lock_guard lock(mutex_);
      if (!warned_.emplace(line).second) continue;
    }
    context.Warn(fmt::format("{}: {}", name, line));
  }
}

}  // namespace etude
