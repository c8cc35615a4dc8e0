#include "src/cli/output_files.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/atomic_file.h"

namespace etude {

OutputFormat FormatOf(const std::string& to, const std::string& path) {
  return to.empty() && path == "-" ? OutputFormat::kLinked : ChooseFormat(to, path);
}

Result<bool> MakeFolder(const std::string& path) {
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

void KeepResult(const std::string& path, const std::string& text, const RunContext& context) {
  const Status written = WriteFile(path, text);
  if (!written) context.Warn("the result is not kept: " + written.error().message);
}

Result<ChakraWriteReport> WriteChakraFile(const Trace& trace, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
  ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakra(trace, {}, sink));
  ETUDE_RETURN_IF_ERROR(file.Commit());
  return report;
}

Status WriteGroupsFile(const std::map<int64_t, std::vector<int64_t>>& groups,
                       const std::string& path) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [id, ranks] : groups) json[std::to_string(id)] = ranks;
  return WriteFile(path, json.dump() + "\n");
}

}  // namespace etude
