#include "src/cli/app/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/base/text/printable.h"
#include "src/base/version.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

void Write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

// Returns the arguments that contain line breaks, longest first.
std::vector<std::string> NamesOfLines(const std::vector<std::string>& args) {
  std::vector<std::string> names;
  for (const std::string& arg : args) {
    const size_t equals = arg.starts_with("--") ? arg.find('=') : std::string::npos;
    const std::string name = equals == std::string::npos ? arg : arg.substr(equals + 1);
    // Leading and trailing line breaks, or names that consist only of them, also occur in the
    // command's own output.
    const size_t first = name.find_first_not_of('\n');
    if (first == std::string::npos) continue;
    const size_t last = name.find_last_not_of('\n');
    if (name.find('\n', first) < last) names.push_back(name.substr(first, last - first + 1));
  }
  std::ranges::stable_sort(names, std::ranges::greater{}, &std::string::size);
  return names;
}

struct LimitName {
  std::string_view name;
  void (*set)(Limits& limits, uint64_t value);
};

constexpr LimitName kLimits[] = {
    {"depth", [](Limits& limits, uint64_t value) { limits.depth = value; }},
    {"element_bytes", [](Limits& limits, uint64_t value) { limits.element_bytes = value; }},
    {"nodes", [](Limits& limits, uint64_t value) { limits.nodes = value; }},
    {"edges", [](Limits& limits, uint64_t value) { limits.edges = value; }},
    {"ratio", [](Limits& limits, uint64_t value) { limits.ratio = value; }},
    {"ratio_grace_bytes", [](Limits& limits, uint64_t value) { limits.ratio_grace_bytes = value; }},
    {"total_bytes", [](Limits& limits, uint64_t value) { limits.total_bytes = value; }},
    {"replay_bytes", [](Limits& limits, uint64_t value) { limits.replay_bytes = value; }},
};

// Applies "name=number".
Status SetLimit(std::string_view text, Limits& limits) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::vector<std::string> names;
  for (const LimitName& limit : kLimits) names.emplace_back(limit.name);
  const auto found = std::ranges::find(kLimits, name, &LimitName::name);
  if (found == std::end(kLimits)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--limit: unknown limit '{}'{}", name, MeantOrAll(name, names)));
  }
  uint64_t value = 0;
  const std::string_view digits =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    return MakeError(ErrorCode::kUsage, "--limit " + std::string(name) + ": found '" +
                                            std::string(digits) + "', expected a whole number");
  }
  found->set(limits, value);
  return {};
}

// Shows progress on one line that is overwritten; silent unless stderr is a terminal.
void ShowProgress(std::string_view what, uint64_t done, uint64_t total) {
  std::string line = fmt::format("{}: {}", Printable(what), done);
  if (total != 0) line += fmt::format(" of {}", total);
  constexpr std::string_view kClear = "\r\033[K";
  Write(stderr, std::string(kClear) + line);
  if (total != 0 && done >= total) Write(stderr, kClear);
  std::fflush(stderr);
}

std::string Overview(std::string_view program,
                     const std::vector<std::unique_ptr<Command>>& commands,
                     const CommandGroups& groups) {
  std::string text = "usage: " + std::string(program) + " COMMAND [options]\n\n";
  text += "Turns traces of real AI jobs into benchmarks that anyone can run and share.\n\n";
  size_t width = 0;
  for (const auto& command : commands) width = std::max(width, command->name().size());
  for (const auto& command : commands) {
    const auto group = groups.find(command->name());
    if (group != groups.end()) {
      text += fmt::format("{}{}\n", command == commands.front() ? "" : "\n", group->second);
    }
    text += fmt::format("  {:<{}}  {}\n", command->name(), width, command->summary());
  }
  text += "\n`" + std::string(program) + " COMMAND --help` describes a command.\n";
  text +=
      "Exit codes: 0 success, 1 check failed, 2 usage error, 3 bad input, 4 not available here,\n";
  text += "5 I/O error, 70 internal error, 130 interrupted.\n";
  return text;
}

int Fail(const Console& console, ExitCode code, std::string_view message) {
  console.Complain(message);
  return static_cast<int>(code);
}

// Returns the exit code of a command after its output.
int Finish(const Console& console, ExitCode code) {
  // Flushing does not report earlier failed writes.
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed || std::ferror(stdout) != 0) {
    return Fail(console, ExitCode::kIo, "stdout: cannot write");
  }
  return static_cast<int>(code);
}

// Opens closed standard streams, so that no file opened later receives their output. Reading and
// writing there still fails.
void HoldStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Makes writes beyond the file size limit (`ulimit -f`) fail instead of ending the process. Unlike
// SIG_IGN, a handler is not inherited by started programs.
void OutliveFileSizeLimit() {
  struct sigaction now {};
  if (sigaction(SIGXFSZ, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = [](int) {};
  now.sa_flags = SA_RESTART;
  sigaction(SIGXFSZ, &now, nullptr);
}

}  // namespace

std::string Console::Shown(std::string_view text) const {
  std::string shown(text);
  for (const std::string& name : names_) {
    const std::string line = Printable(name);
    for (size_t at = 0; (at = shown.find(name, at)) != std::string::npos; at += line.size()) {
      shown.replace(at, name.size(), line);
    }
  }
  return PrintableLines(shown);
}

void Console::WriteLine(std::string_view line) const {
  constexpr size_t kMostBytes = 4000;  // maximum, because names of any length may be quoted
  Write(stderr, WithoutLongLines(Shown(line), kMostBytes) + "\n");
}

void Console::Print(std::string_view text) const { Write(stdout, Shown(text)); }

void Console::PrintData(std::string_view data) const {
  if (isatty(STDOUT_FILENO) == 0) return Write(stdout, data);
  std::string lines(data);
  std::erase(lines, '\r');
  Write(stdout, PrintableLines(lines));
}

void Console::Say(std::string_view line) const {
  if (!quiet_) WriteLine(line);
}

void Console::Complain(std::string_view line) const {
  std::fflush(stdout);  // earlier output comes first
  WriteLine("etude: " + std::string(line));
}

Status Command::CheckStandardOutput(const std::string& output, bool json) const {
  if (output != "-" || !json) return {};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: --json and -o - both write to standard output", name()));
}

int RunCommandLine(std::string_view program, std::vector<std::unique_ptr<Command>> commands,
                   const std::vector<std::string>& args, const CommandGroups& groups) {
  HoldStandardStreams();
  OutliveFileSizeLimit();
  Console console;
  console.names_ = NamesOfLines(args);
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    console.Print(Overview(program, commands, groups));
    return Finish(console, args.empty() ? ExitCode::kUsage : ExitCode::kOk);
  }
  if (args[0] == "--version") {
    console.Print("etude " + std::string(kVersion) + "\n");
    return Finish(console, ExitCode::kOk);
  }
  const auto found =
      std::ranges::find(commands, args[0], [](const auto& command) { return command->name(); });
  if (found == commands.end()) {
    std::vector<std::string> names;
    for (const auto& command : commands) names.emplace_back(command->name());
    const std::string hint = DidYouMean(args[0], names);
    return Fail(console, ExitCode::kUsage,
                "unknown command '" + args[0] + "'" +
                    (hint.empty() ? "; `" + std::string(program) + " --help` lists them" : hint));
  }
  Command& command = **found;
  // "suite run" of the program "etude suite".
  constexpr std::string_view kTool = "etude ";
  std::string name(program.starts_with(kTool) ? program.substr(kTool.size()) : "");
  if (!name.empty()) name += ' ';
  name += command.name();
  Options options(name, command.summary());
  command.Declare(options);
  std::vector<std::string> limits;
  options.Flag("--strict", &console.strict_,
               "refuse damaged files instead of reading the intact part");
  options.Flag("-q,--quiet", &console.quiet_, "no warnings and no progress on stderr");
  options.Values("--limit", &limits, "NAME=N", "change a limit on input (docs/limits.md)");
  const Options::Parsed parsed = options.Parse({args.begin() + 1, args.end()});
  switch (parsed.outcome) {
    case Options::Outcome::kHelp: console.Print(parsed.text); return Finish(console, ExitCode::kOk);
    case Options::Outcome::kError:
      return Fail(console, ExitCode::kUsage, name + ": " + parsed.text);
    case Options::Outcome::kRun: break;
  }
  console.context_.cache = &console.cache_;
  for (const std::string& limit : limits) {
    if (const Status status = SetLimit(limit, console.context_.limits); !status) {
      return Fail(console, ExitCode::kUsage, status.error().message);
    }
  }
  if (!console.quiet_) {
    console.context_.warn = [&console](std::string_view message) {
      console.WriteLine("etude: warning: " + std::string(message));
    };
    if (isatty(STDERR_FILENO) != 0) console.context_.progress = ShowProgress;
  }
  try {
    const Result<ExitCode> result = command.Run(console);
    if (!result) return Fail(console, ExitCodeOf(result.error().code), result.error().message);
    return Finish(console, *result);
  } catch (const std::bad_alloc&) {
    return Fail(console, ExitCode::kUnavailable, "out of memory");
  } catch (const std::exception& error) {
    return Fail(console, ExitCode::kInternal, std::string("internal error: ") + error.what());
  }
}

}  // namespace etude
