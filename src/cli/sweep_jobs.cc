#include "src/cli/sweep_jobs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "src/base/sha256.h"
#include "src/cli/exit_code.h"
#include "src/cli/group_ranks.h"
#include "src/cli/installation.h"
#include "src/cli/output_files.h"
#include "src/formats/byte_source.h"
#include "src/formats/capture_folder.h"
#include "src/formats/job_folder.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

// Patterns and models in text have no classes: they are files, called so.
constexpr const char* kGeneratedPrefix = "job";
bool HasClasses(const std::string& what) { return what != "microbench" && what != "text"; }

std::string RankOfPrefix(const std::string& prefix, int64_t rank) {
  return fmt::format("{}.{}.et", prefix, rank);
}

Status AddFile(const std::string& name, const std::string& path, const Limits& limits,
               std::string& listing) {
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, limits, limits.total_bytes));
  listing += fmt::format("{} {}\n", Sha256(bytes), name);
  return {};
}

// Runs `words` without output; its errors go to the file `errors`.
Result<int> RunSilently(std::vector<std::string> words, const std::string& errors) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", words[0], std::strerror(failed)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
    ETUDE_RETURN_IF_ERROR(AddFile("rank", RankOfPrefix(prefix, rank), limits, listing));
  }
  return Sha256(listing);
}

Result<std::string> SweepJobs::HashOf(const SweepJobSource& source, int64_t npus) {
  std::string& hash = hashes_[{source, npus}];
  if (!hash.empty()) return hash;
  if (source.generate.empty()) {
    ETUDE_ASSIGN_OR_RETURN(hash, HashFiles(source, npus));
    return hash;
  }
  std::string text = "generate\n";
  for (const std::string& word : source.generate) {
    if (std::ranges::find(source.files, word) == source.files.end()) {
      text += word + "\n";
    } else {
      ETUDE_RETURN_IF_ERROR(AddFile("", word, console_.context().limits, text));
    }
  }
  hash = Sha256(text);
  return hash;
}

Result<std::string> SweepJobs::HashFiles(const SweepJobSource& source, int64_t npus) const {
  const Limits& limits = console_.context().limits;
  const std::string& path = source.path;
  std::string groups = source.groups;
  std::string listing;
  if (IsJobFolder(path)) {
    std::vector<std::string> names;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("class")) names.push_back(name);
    }
    std::ranges::sort(names);
    for (const std::string& name : names) {
      ETUDE_RETURN_IF_ERROR(AddFile(name, path + "/" + name, limits, listing));
    }
  } else if (IsFolder(path)) {
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, console_.context()));
    std::vector<std::string> traces;
    for (const CaptureRank& rank : folder.ranks) {
      traces.push_back(RichestInput(rank).path);
      for (const std::string& file : rank.files()) {
        ETUDE_RETURN_IF_ERROR(AddFile(fs::path(file).filename().string(), file, limits, listing));
      }
    }
    if (groups.empty()) groups = GroupsBeside(traces);
  } else if (fs::exists(path)) {
    ETUDE_RETURN_IF_ERROR(AddFile("trace", path, limits, listing));
  } else {
    // As many as there are, and whether there is one too many.
    int64_t ranks = 0;
    while (ranks <= npus && fs::exists(RankOfPrefix(path, ranks))) ++ranks;
    ETUDE_ASSIGN_OR_RETURN(listing,
                           HashOfPrefix(path, std::clamp<int64_t>(ranks, 1, npus), limits));
    if (ranks > npus) listing += "more\n";
    if (groups.empty()) groups = GroupsBeside({RankOfPrefix(path, 0)});
  }
  if (!groups.empty()) ETUDE_RETURN_IF_ERROR(AddFile("groups", groups, limits, listing));
  return Sha256(fmt::format("{}{} {}", listing, source.compute, source.fill_ranks));
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
  ETUDE_ASSIGN_OR_RETURN(SimJob read, ReadSimJob(options, npus, console_));
  auto job = std::make_shared<const SimJob>(std::move(read));
  slot->job = job;
  return job;
}

Result<std::string> SweepJobs::Generate(const SweepPoint& point, const std::string& hash,
                                        const RunContext& context) {
  const SweepJobSource& source = point.job;
  const std::string folder = fmt::format("{}/jobs/{}", folder_, hash.substr(0, 16));
  const bool has_classes = HasClasses(source.generate.front());
  const std::string path = has_classes ? folder : fmt::format("{}/{}", folder, kGeneratedPrefix);
  if (fs::exists(folder)) return path;
  ETUDE_RETURN_IF_ERROR(MakeFolder(folder_ + "/jobs"));
  // Complete or not at all: made beside, then renamed.
  const std::string made = fmt::format("{}.{}", folder, getpid());
  const std::string errors = made + ".log";
  std::vector<std::string> words = {ProgramPath(), "generate"};
  words.insert(words.end(), source.generate.begin(), source.generate.end());
  words.insert(words.end(),
               {"-o", has_classes ? made : fmt::format("{}/{}", made, kGeneratedPrefix)});
  if (has_classes) words.insert(words.end(), {"--to", "classes"});
  const Result<int> code = RunSilently(std::move(words), errors);
  const Result<std::string> said = ReadWholeFile(errors, context.limits);
  std::error_code ignored;
  fs::remove(errors, ignored);
  if (!code) return tl::unexpected<Error>(code.error());
  if (*code == 0) {
    if (said) PassWarnings(*said, point.name, context);
    std::error_code error;
    fs::rename(made, folder, error);
    if (!error || fs::exists(folder)) {  // by another shard
      fs::remove_all(made, ignored);
      return path;
    }
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}", folder, error.message()));
  }
  fs::remove_all(made, ignored);
  if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
  const std::string message =
      said && !said->empty() ? LastLine(*said) : fmt::format("exit code {}", *code);
  const bool refused =
      *code == static_cast<int>(ExitCode::kUsage) || *code == static_cast<int>(ExitCode::kBadInput);
  return MakeError(refused ? ErrorCode::kBadInput : ErrorCode::kUnavailable,
                   "etude generate: " + message);
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
