#include "src/cli/record/own_mark.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "src/base/result.h"
#include "src/base/sha256.h"

namespace etude {
namespace {

constexpr std::string_view kFormat = "etude-mark 1\n";
constexpr size_t kKeyBytes = 32;

// Returns an absolute path in an environment variable, otherwise "".
std::string PathIn(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value != '/' ? "" : value;
}

// Returns the user's state folder: $XDG_STATE_HOME/etude or ~/.local/state/etude; "" without a
// home.
std::string StateFolder() {
  if (const std::string state = PathIn("XDG_STATE_HOME"); !state.empty()) return state + "/etude";
  std::string home = PathIn("HOME");
  if (home.empty()) {
    const passwd* user = getpwuid(geteuid());
    if (user != nullptr && user->pw_dir != nullptr) home = user->pw_dir;
  }
  return home.starts_with('/') ? home + "/.local/state/etude" : "";
}

// Reads the key, if only this user can read or replace it.
Result<std::string> ReadKey() {
  const std::string folder = StateFolder();
  if (folder.empty()) return BadInput("this user has no home folder");
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) {
    return BadInput("this user has recorded nothing on this machine");
  }
  if (about.st_uid != geteuid() || (about.st_mode & 022) != 0) {
    return BadInput(folder + ": found write permission for other users, expected none");
  }
  const std::string path = folder + "/mark.key";
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    return BadInput(errno == ENOENT ? "this user has recorded nothing on this machine"
                                    : path + ": " + std::strerror(errno));
  }
  std::array<char, kKeyBytes + 1> bytes{};
  const bool is_alone = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
                        about.st_uid == geteuid() && (about.st_mode & 077) == 0;
  const ssize_t count = is_alone ? ::read(file, bytes.data(), bytes.size()) : 0;
  ::close(file);
  if (!is_alone) {
    return BadInput(path + ": found a file that other users can access, expected mode 0600");
  }
  if (count != static_cast<ssize_t>(kKeyBytes)) {
    return BadInput(fmt::format("{}: found {} bytes, expected {}", path, count, kKeyBytes));
  }
  return std::string(bytes.data(), kKeyBytes);
}

// Returns whether the command may run another program in another folder: all commands except
// `python /path/to/train.py` and similar ones.
bool DependsOnFolder(std::span<const std::string> command) {
  const auto program =
      std::ranges::find_if(command, [](std::string_view word) { return word.ends_with(".py"); });
  if (program == command.end() || !program->starts_with('/')) return true;
  if (command.front().find('/') != std::string::npos && !command.front().starts_with('/')) {
    return true;
  }
  // Modules (-m) and code (-c) are searched, or import others, in the working folder.
  return std::any_of(command.begin() + (program == command.begin() ? 0 : 1), program,
                     [](std::string_view word) {
                       return word.starts_with('-') && !word.starts_with("--") &&
                              word.find_first_of("mc") != std::string_view::npos;
                     });
}

std::string MarkedText(const JobFile& job) {
  std::error_code error;
  std::vector<std::string> words = {job.id, ""};
  if (DependsOnFolder(job.command)) words[1] = std::filesystem::current_path(error).string();
  words.insert(words.end(), job.command.begin(), job.command.end());
  std::string text(kFormat);
  for (const std::string& word : words) text += fmt::format("{}:{}", word.size(), word);
  return text;
}

}  // namespace

std::string WhyNotOwn(const JobFile& job) {
  if (job.mark.empty()) return "its job.json has no user mark";
  const Result<std::string> key = ReadKey();
  if (!key) return key.error().message;
  if (SameSecret(HmacSha256(*key, MarkedText(job)), job.mark)) return "";
  return DependsOnFolder(job.command)
             ? "its mark belongs to another user, command or working folder"
             : "its mark belongs to another user or command";
}

}  // namespace etude
