#include "src/jobs/output_files.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/file_endings.h"

namespace etude {
namespace {

// Returns kUsage if a file has this name.
Status CheckFolderName(const std::string& path) {
  const std::string wrong = WrongEnding(path, {});
  return wrong.empty() ? Status() : MakeError(ErrorCode::kUsage, "--output: " + wrong);
}

}  // namespace

OutputFormat FormatOf(const std::string& to, const std::string& path) {
  return to.empty() && path == "-" ? OutputFormat::kLinked : ChooseFormat(to, path);
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

Result<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return MakeError(ErrorCode::kIo, path + ": " + error.message());
  return absolute.lexically_normal().string();
}

Result<bool> MakeFolder(const std::string& path) {
  ETUDE_RETURN_IF_ERROR(CheckFolderName(path));
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) return MakeError(ErrorCode::kIo, path + ": cannot create it: " + error.message());
  return made;
}

Result<std::string> MakeTemporaryFolder(std::string_view name) {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / fmt::format("{}-XXXXXX", name)).string();
  if (!error && mkdtemp(path.data()) != nullptr) return path;
  if (!error) error.assign(errno, std::generic_category());
  return MakeError(ErrorCode::kIo, fmt::format("a temporary folder {}: {}", path, error.message()));
}

Status CheckOtherFolder(std::string_view command, const std::string& input,
                        const std::string& output) {
  std::error_code error;
  if (!std::filesystem::equivalent(input, output, error)) return {};
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("{}: -o {}: found the input folder, expected another folder", command, output));
}

void KeepResult(const std::string& path, const std::string& text, const RunContext& context) {
  const Status written = ReplaceFile(path, text);
  if (!written) context.Warn("the result is lost: " + written.error().message);
}

Result<ChakraWriteReport> WriteChakraFile(const Trace& trace, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, Existing::kReplace));
  const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
  ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakra(trace, {}, sink));
  ETUDE_RETURN_IF_ERROR(file.Commit());
  return report;
}

std::string GroupsFileName(const std::string& prefix) { return prefix + ".comm_groups.json"; }

std::optional<std::string> RankFileBeyond(const std::string& before, const std::string& after,
                                          int64_t ranks) {
  const std::filesystem::path path(before);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string begin = path.filename().string();
  std::optional<int64_t> beyond;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(after) ||
        name.size() <= begin.size() + after.size()) {
      continue;
    }
    const std::string number = name.substr(begin.size(), name.size() - begin.size() - after.size());
    const std::optional<int64_t> rank = ParseWhole(number);
    if (!rank || *rank < ranks || std::to_string(*rank) != number) continue;
    beyond = std::min(beyond.value_or(*rank), *rank);
  }
  if (!beyond) return std::nullopt;
  return fmt::format("{}{}{}", before, *beyond, after);
}

tl::unexpected<Error> OtherJob(const std::string& path, int64_t ranks) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found a file of another job, expected none next to the traces "
                               "of {}; remove that job's files, or choose another output",
                               path, FormatCount(static_cast<uint64_t>(ranks), "rank")));
}

Status CheckNoOtherJob(const std::string& prefix, int64_t ranks, bool has_groups) {
  std::string folder = std::filesystem::path(prefix).parent_path().string();
  if (folder.empty()) folder = ".";
  if (IsJobFolder(folder)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}/{}: found a job of rank classes, which hides other traces in "
                                 "its folder; choose another output",
                                 folder, kClassesFile));
  }
  if (const auto other = RankFileBeyond(prefix + ".", ".et", ranks)) return OtherJob(*other, ranks);
  const std::string groups = GroupsFileName(prefix);
  std::error_code error;
  if (!has_groups && std::filesystem::exists(groups, error)) return OtherJob(groups, ranks);
  return {};
}

Status CheckNoTraces(const std::string& folder, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckFolderName(folder));
  if (!IsFolder(folder) || IsJobFolder(folder)) return {};
  const auto found = ListCaptureFolder(folder, context);
  if (!found) return {};
  for (const CaptureRank& rank : found->ranks) {
    for (const std::string& file : rank.files()) {
      // An incomplete earlier job in classes.
      if (std::filesystem::path(file).filename().string().starts_with("class.")) continue;
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: found a trace, which a job of rank classes in the same "
                                   "folder would hide; choose another output",
                                   file));
    }
  }
  return {};
}

Status WriteGroupsFile(const std::map<int64_t, std::vector<int64_t>>& groups,
                       const std::string& path) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [id, ranks] : groups) json[std::to_string(id)] = ranks;
  return ReplaceFile(path, json.dump() + "\n");
}

}  // namespace etude
