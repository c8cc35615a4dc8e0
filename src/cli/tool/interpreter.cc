#include "src/cli/tool/interpreter.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace etude {
namespace {

namespace fs = std::filesystem;

// Returns the file that a shell would run; "" if there is none.
std::string OnPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? std::string_view() : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string file = (fs::path(rest.substr(0, end)) / program).string();
    std::error_code error;
    if (access(file.c_str(), X_OK) == 0 && !fs::is_directory(file, error)) return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

// Accepts "python", "python3", "python3.11", but not "pypy", which has no torch.
bool IsPython(std::string_view name) {
  constexpr std::string_view kWord = "python";
  if (!name.starts_with(kWord)) return false;
  return name.find_first_not_of("0123456789.", kWord.size()) == std::string_view::npos;
}

// Returns the interpreter in a script's first line, also of "#!/usr/bin/env python3"; "" for other
// files.
std::string NamedInterpreter(const std::string& file) {
  std::array<char, 512> beginning{};
  std::ifstream in(file, std::ios::binary);
  in.read(beginning.data(), beginning.size());
  std::string_view line(beginning.data(), static_cast<size_t>(in.gcount()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find_first_of("\r\n") - 2);
  std::string last;
  while (!line.empty()) {
    const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    // Skips options of env and of Python.
    if (!word.empty() && (last.empty() || fs::path(last).filename() == "env") && word[0] != '-') {
      last = word;
    }
  }
  return last;
}

}  // namespace

std::optional<std::string> PythonOf(const std::string& program) {
  const std::string file = OnPath(program);
  if (file.empty()) return std::nullopt;
  if (IsPython(fs::path(file).filename().string())) return file;
  const std::string named = NamedInterpreter(file);
  if (named.empty() || !IsPython(fs::path(named).filename().string())) return std::nullopt;
  const std::string interpreter = OnPath(named);
  return interpreter.empty() ? std::nullopt : std::optional(interpreter);
}

}  // namespace etude
