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

// Headings of command groups in the overview, by the first command of each group.
using CommandGroups = std::map<std::string_view, std::string_view>;

// Output of a command: the answer on stdout, messages on stderr.
class Console {
 public:
  // Writes `text` (readable or JSON) to stdout, with terminal control characters escaped.
  void Print(std::string_view text) const;
  // Writes machine-readable data (CSV) to stdout unchanged.
  void PrintData(std::string_view data) const;
  // Writes one line to stderr, unless --quiet.
  void Say(std::string_view line) const;
  // Writes one line to stderr, even with --quiet: the reason for a negative answer.
  void Complain(std::string_view line) const;

  // Returns the context for library calls. Warnings and progress go to stderr.
  const RunContext& context() const { return context_; }
  // Returns whether damaged files are refused instead of read partially (--strict).
  bool strict() const { return strict_; }

 private:
  friend int RunCommandLine(std::string_view program,
                            std::vector<std::unique_ptr<class Command>> commands,
                            const std::vector<std::string>& args, const CommandGroups& groups);
  // Returns `text` escaped for a terminal; names from the command line stay on one line.
  std::string Shown(std::string_view text) const;
  // Writes `line` to stderr.
  void WriteLine(std::string_view line) const;

  RunContext context_;
  RunCache cache_;                  // of context_
  std::vector<std::string> names_;  // arguments with line breaks, longest first
  bool strict_ = false;
  bool quiet_ = false;
};

// A subcommand, in the file src/cli/<group>/<name>.cc, declared in commands.h and listed in
// src/cli/main.cc (or torch_main.cc).
class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  // Declares options and positionals. --strict, --quiet, --limit and --help are predefined.
  virtual void Declare(Options& options) = 0;
  // Runs the command and returns its exit code. An error is printed and mapped to its exit code.
  virtual Result<ExitCode> Run(const Console& console) = 0;

 protected:
  // Returns kUsage if `output` and JSON would both be written to standard output.
  Status CheckStandardOutput(const std::string& output, bool json) const;
};

// Parses `args` (without the program name), runs the named command and returns the exit code.
// Prints the overview without arguments or for --help, and the version for --version.
int RunCommandLine(std::string_view program, std::vector<std::unique_ptr<Command>> commands,
                   const std::vector<std::string>& args, const CommandGroups& groups = {});

}  // namespace etude
