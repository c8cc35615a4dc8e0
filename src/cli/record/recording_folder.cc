#include "src/cli/record/recording_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/open_file.h"
#include "src/base/text/bounded_json.h"
#include "src/base/text/folder_names.h"
#include "src/base/text/format_count.h"
#include "src/cli/tool/json_fields.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/job_json.h"
#include "src/jobs/output_files.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using ParsedJson = nlohmann::json;

constexpr std::string_view kHookFile = ".etude-hook";
constexpr std::string_view kStatusPrefix = ".etude-status.";
// Read by python/etude/recording/settings.py.
constexpr std::string_view kCommandFile = ".etude-command";
constexpr std::string_view kStaging = ".etude-recording";
constexpr size_t kSmallFileMax = size_t{1} << 20;

bool IsTemporary(std::string_view name) {
  return name == ".lock" || name == kStaging || name == kHookFile || name == kCommandFile ||
         name.starts_with(kStatusPrefix) || name.starts_with(".tmp-");
}

// Returns whether the disk is nearly full.
bool DiskIsFull(const std::string& path) {
  constexpr uintmax_t kLittle = uintmax_t{1} << 20;
  std::error_code error;
  const fs::space_info space = fs::space(path, error);
  return !error && space.available < kLittle;
}

// Returns whether `name` is a file of a capture: host.0.json.gz, linked.3.json, job.1.et, ...
bool IsOfCapture(std::string_view name) {
  if (name == kJobFile || IsTemporary(name)) return true;
  if (name.ends_with(".et")) return true;
  constexpr std::array<std::string_view, 6> kKinds = {"host.",    "device.", "linked.",
                                                      "capture.", "replay.", "compare."};
  return std::ranges::any_of(kKinds, [name](std::string_view kind) {
    return name.starts_with(kind) && name.size() > kind.size() &&
           (std::isdigit(static_cast<unsigned char>(name[kind.size()])) != 0 ||
            name.substr(kind.size()) == "json");
  });
}

// Reads a small file; "" on failure.
std::string ReadSmall(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kSmallFileMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

bool IsJob(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  const ParsedJson json = ParseBounded<ParsedJson>(file);
  return json.is_object() && json.value("format", ParsedJson()) == kJobFormat;
}

std::optional<RecordingStatus> ParseStatus(const std::string& text) {
  const ParsedJson json = ParseBounded<ParsedJson>(text);
  if (!json.is_object() || TextIn(json, "format") != "etude-record-status") return std::nullopt;
  RecordingStatus status;
  status.steps_seen = CountIn(json, "steps_seen").value_or(0);
  status.complete = json.value("complete", ParsedJson()) == true;
  status.phase = TextIn(json, "phase");
  status.code = TextIn(json, "code");
  status.reason = TextIn(json, "reason");
  status.rank = CountIn(json, "rank");
  const auto fits = json.find("suggest");
  if (fits != json.end()) {
    status.fitting_warmup = CountIn(*fits, "warmup");
    status.fitting_steps = CountIn(*fits, "steps");
  }
  return status;
}

constexpr std::string_view kMakeRoom = "free disk space, or record into a folder on another disk";

NoCapture DiskFull() {
  return {"disk-full", "the disk of the capture folder is full", std::string(kMakeRoom)};
}

std::string RemedyFor(const RecordingStatus& status) {
  if (status.code == "ended-early" || status.code.empty()) {
    if (status.fitting_warmup && status.fitting_steps) {
      return fmt::format("use --warmup {} --steps {} for a program of this length",
                         *status.fitting_warmup, *status.fitting_steps);
    }
    return "run the program for more steps";
  }
  if (status.code == "no-step") {
    return "a step ends with an optimizer step, a call of the outermost module or profiler.step(); "
           "to mark steps explicitly use `with etude.record(DIR) as r:` and r.step()";
  }
  if (status.code == "disk-full") return std::string(kMakeRoom);
  if (status.code == "busy") {
    return "run some steps without the program's own profiler or observer";
  }
  return "";
}

}  // namespace

Result<RecordingFolder> RecordingFolder::Open(const std::string& path, bool force) {
  std::error_code error;
  const fs::file_status kind = fs::status(path, error);
  if (fs::exists(kind) && !fs::is_directory(kind)) {
    return BadInput(path + ": found a file, expected a folder or a new name");
  }
  const bool is_ours = !fs::exists(kind);
  ETUDE_RETURN_IF_ERROR(MakeFolder(path));
  RecordingFolder folder(path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), false,
                         is_ours);
  folder.keep_staging_ = true;  // until the object has its own
  if (folder.lock_ >= 0 && !TryLock(folder.lock_)) {
    return BadInput(path +
                    ": another `etude record` is writing to this folder; choose another one");
  }
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
  const bool is_capture = IsJob(path + "/" + std::string(kJobFile));
  if (!is_capture && !std::ranges::all_of(names, IsTemporary)) {
    return BadInput(path + ": found a folder with other files, expected an empty or new folder");
  }
  if (is_capture && !force) {
    return BadInput(path + ": already contains a capture; --force replaces it");
  }
  for (const std::string& name : names) {
    if (IsTemporary(name)) fs::remove_all(path + "/" + name, error);
    if (error) return MakeError(ErrorCode::kIo, path + "/" + name + ": " + error.message());
  }
  folder.has_earlier_ = is_capture;
  fs::create_directory(folder.staging(), error);
  if (error) return MakeError(ErrorCode::kIo, folder.staging() + ": " + error.message());
  folder.keep_staging_ = false;
  return folder;
}

RecordingFolder::RecordingFolder(RecordingFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      has_earlier_(other.has_earlier_),
      is_ours_(other.is_ours_),
      keep_staging_(other.keep_staging_) {}

RecordingFolder::~RecordingFolder() {
  if (!path_.empty() && !keep_staging_) {
    std::error_code error;
    fs::remove_all(staging(), error);
    // Fails as intended unless the folder is empty.
    if (is_ours_) fs::remove(path_, error);
  }
  if (lock_ >= 0) ::close(lock_);
}

std::string RecordingFolder::staging() const { return path_ + "/" + std::string(kStaging); }

Status RecordingFolder::LeaveCommand(const std::vector<std::string>& command) const {
  return ReplaceFile(
      staging() + "/" + std::string(kCommandFile),
      ParsedJson(command).dump(-1, ' ', false, ParsedJson::error_handler_t::replace));
}

bool RecordingFolder::has_new() const {
  std::error_code error;
  return fs::exists(staging() + "/" + std::string(kJobFile), error);
}

Status RecordingFolder::Publish() {
  std::error_code error;
  const auto lost = [&](const std::string& why) {
    keep_staging_ = true;
    return MakeError(ErrorCode::kIo, fmt::format("{}; the recording is in {}", why, staging()));
  };
  const auto failure = [&](const std::string& name) {
    return lost(fmt::format("{}/{}: {}", path_, name, error.message()));
  };
  Result<std::vector<std::string>> names = NamesIn(staging());
  if (!names) return lost(names.error().message);
  const Result<std::vector<std::string>> earlier = NamesIn(path_);
  if (!earlier) return lost(earlier.error().message);
  for (const std::string& name : *earlier) {
    if (!IsOfCapture(name) || name == kStaging) continue;
    fs::remove(path_ + "/" + name, error);
    if (error) return failure(name);
  }
  // The job refers to the other files, so it comes last.
  std::ranges::stable_partition(*names, [](const auto& name) { return name != kJobFile; });
  for (const std::string& name : *names) {
    if (IsTemporary(name)) continue;
    fs::rename(staging() + "/" + name, path_ + "/" + name, error);
    if (error) return failure(name);
  }
  return {};
}

std::vector<RecordingStatus> ReadStatuses(const std::string& path) {
  std::vector<RecordingStatus> statuses;
  for (const std::string& name : NamesIn(path).value_or(std::vector<std::string>())) {
    if (!name.starts_with(kStatusPrefix)) continue;
    std::optional<RecordingStatus> status = ParseStatus(ReadSmall(path + "/" + name));
    if (status) statuses.push_back(*std::move(status));
  }
  std::ranges::stable_sort(statuses, std::ranges::greater(), &RecordingStatus::steps_seen);
  return statuses;
}

NoCapture ExplainNoCapture(const std::string& path, const std::vector<RecordingStatus>& statuses,
                           bool killed) {
  if (!statuses.empty()) {
    const RecordingStatus& status = statuses.front();
    if (!status.code.empty()) return {status.code, status.reason, RemedyFor(status)};
    if (DiskIsFull(path)) return DiskFull();
    // No status: it is written at each phase, except by a killed process.
    return {
        "killed",
        fmt::format("the program {}; at least {} seen (phase: {})",
                    killed ? "was killed" : "was killed or called os._exit, or the disk was full",
                    FormatCount(static_cast<uint64_t>(status.steps_seen), "step was", "steps were"),
                    status.phase),
        RemedyFor(status)};
  }
  if (DiskIsFull(path)) return DiskFull();
  std::error_code error;
  const std::string hook = path + "/" + std::string(kHookFile);
  if (!fs::exists(hook, error)) {
    return {"no-hook", "no Python program started with the recording hook",
            "Python's options -I, -E and -S disable the hook, and so does clearing PYTHONPATH; use "
            "`with etude.record(DIR):` in the program instead"};
  }
  std::string text = ReadSmall(hook);
  if (!text.empty()) {
    text.erase(text.find_last_not_of('\n') + 1);
    return {"internal", "cannot load the recorder: " + text, ""};
  }
  return {"no-torch", "the program did not import torch, or ended before its first step", ""};
}

}  // namespace etude
