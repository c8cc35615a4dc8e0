#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/container/run_cache.h"
#include "src/base/exit_code.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/app/options.h"

namespace etude {

// Titles of groups of commands in the overview, by the first command of each.
using CommandGroups = std::map<std::string_view, std::string_view>;

// Where a command may speak: stdout is the answer, stderr is the talk.
class Console {
 public:
  // Writes `text`, for people or JSON, to stdout; what would steer a terminal is spelled out.
  void Print(std::string_view text) const;
  // Writes what only programs read (CSV) to stdout as it is.
  void PrintData(std::string_view data) const;
  // Writes one line to stderr, unless --quiet.
  void Say(std::string_view line) const;
  // Writes one line to stderr in any case: why the answer is no.
  void Complain(std::string_view line) const;

  // Context for library calls: warnings and progress go to stderr.
  const RunContext& context() const { return context_; }
  // Whether damaged files are refused instead of read as far as they go (--strict).
  bool strict() const { return strict_; }

 private:
  friend int RunCommandLine(std::string_view program,
                            std::vector<std::unique_ptr<class Command>> commands,
                            const std::vector<std::string>& args, const CommandGroups& groups);
  // `text` as a terminal may have it; names that the command line gave stay on one line.
  std::string Shown(std::string_view text) const;
  // Writes `line` to stderr.
  void WriteLine(std::string_view line) const;

  RunContext context_;
  RunCache cache_;                  // of context_
  std::vector<std::string> names_;  // arguments that hold ends of lines, the longest first
  bool strict_ = false;
  bool quiet_ = false;
};

// A subcommand: one file, src/cli/<group>/<name>.cc, declared in commands.h and listed in
// src/cli/main.cc (or torch_main.cc).
class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  // Declares the options and positionals; --strict, --quiet, --limit and --help exist already.
  virtual void Declare(Options& options) = 0;
  // Does the work. The exit code is the answer; an error is printed and mapped to its exit code.
  virtual Result<ExitCode> Run(const Console& console) = 0;

 protected:
  // kUsage if the file named `output` is standard output and JSON goes there as well.
  Status CheckStandardOutput(const std::string& output, bool json) const;
};

// Parses `args` (without the program's name), runs the command they name and returns the process's
// exit code. Prints the overview for no arguments and for --help, the version for --version.
int RunCommandLine(std::string_view program, std::vector<std::unique_ptr<Command>> commands,
                   const std::vector<std::string>& args, const CommandGroups& groups = {});

}  // namespace etude
