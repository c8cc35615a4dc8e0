#include "src/cli/app/installation.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

// Location of the package: paths relative to the program's folder, or absolute, separated by ':'.
// Set by the build (CMakeLists.txt); for a wheel also the name of its Python.
#ifndef ETUDE_WHEEL_PYTHON
#define ETUDE_WHEEL_PYTHON ""
#endif

#ifndef ETUDE_RECORDER_TORCH
#define ETUDE_RECORDER_TORCH ""
#endif

namespace etude {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> PackageFolders() {
  const fs::path program = ProgramFolder();
  std::vector<std::string> folders;
  std::string_view rest = ETUDE_PYTHON_FOLDERS;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    folders.push_back((program / rest.substr(0, end)).lexically_normal().string());
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return folders;
}

}  // namespace

const std::string_view kRecorderTorch = ETUDE_RECORDER_TORCH;

std::string ProgramPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

std::string ProgramFolder() { return fs::path(ProgramPath()).parent_path().string(); }

Result<std::string> PythonFolder() {
  const std::vector<std::string> folders = PackageFolders();
  std::error_code error;
  for (const std::string& folder : folders) {
    if (fs::exists(fs::path(folder) / "etude/hook/sitecustomize.py", error)) return folder;
  }
  return MakeError(
      ErrorCode::kUnavailable,
      fmt::format("Etude's Python package is missing; searched: {}", fmt::join(folders, ", ")));
}

std::vector<std::string> PythonCall(const std::string& python, const std::string& python_folder,
                                    std::string_view module, std::string_view call,
                                    const std::vector<std::string>& words) {
  std::vector<std::string> command = {
      python, "-c",
      fmt::format("import sys; own = sys.argv.pop(1); path = [p for p in sys.path if p]; "
                  "sys.path = [own] + path; import etude; sys.path = path + [own]; "
                  "import etude.{}; {}",
                  module, call),
      python_folder};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::string HookPath(const std::string& python_folder) {
  const char* before = std::getenv("PYTHONPATH");
  const bool any = before != nullptr && *before != '\0';
  return HookFolder(python_folder) + (any ? std::string(":") + before : "");
}

std::string HookFolder(const std::string& python_folder) { return python_folder + "/etude/hook"; }

std::string RecorderLibrary() {
  std::error_code error;
  const fs::path library = (fs::path(ProgramFolder()) / ETUDE_RECORDER_LIBRARY).lexically_normal();
  return fs::exists(library, error) ? library.string() : "";
}

std::optional<std::string> WheelPython() {
  const std::string name = ETUDE_WHEEL_PYTHON;
  if (name.empty()) return std::nullopt;
  std::error_code error;
  const fs::path beside = fs::path(ProgramFolder()) / name;
  return fs::exists(beside, error) ? beside.string() : name;
}

}  // namespace etude
