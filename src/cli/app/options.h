#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// What a whole number on the command line may be.
struct Bounds {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// The command line of one subcommand, declared before it is parsed. Targets must outlive parsing
// and hold their defaults. A mistyped option is an error that names the nearest right one.
class Options {
 public:
  Options(std::string_view command, std::string_view summary);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // `names` as in "-o,--output". `what` is the placeholder shown in the help: "FILE".
  void Flag(std::string_view names, bool* target, std::string_view help);
  void Value(std::string_view names, std::string* target, std::string_view what,
             std::string_view help);
  // What is written: one file, of the format that names with one of `endings` (".json") have, or,
  // without `endings`, a folder or (PREFIX) several files. A name of another format is an error.
  void Output(std::string_view names, std::string* target, std::string_view what,
              std::string_view help, std::vector<std::string_view> endings);
  // The same for several.
  void Outputs(std::string_view names, std::vector<std::string>* target, std::string_view what,
               std::string_view help, std::vector<std::string_view> endings);
  // An optional target stays empty unless the option is given: "" is a value too.
  void Value(std::string_view names, std::optional<std::string>* target, std::string_view what,
             std::string_view help);
  // A whole number in decimal; anything else, or out of bounds, is an error.
  void Value(std::string_view names, int64_t* target, std::string_view what, std::string_view help,
             Bounds bounds = {});
  void Value(std::string_view names, std::optional<int64_t>* target, std::string_view what,
             std::string_view help, Bounds bounds = {});
  // A number above `above`; anything else is an error.
  void Value(std::string_view names, std::optional<double>* target, std::string_view what,
             std::string_view help, double above = -std::numeric_limits<double>::infinity());
  // May be given several times.
  void Values(std::string_view names, std::vector<std::string>* target, std::string_view what,
              std::string_view help);
  void Choice(std::string_view names, std::string* target, std::vector<std::string> choices,
              std::string_view help);
  void Required(std::string_view name);
  // Options that are declared from now on are shown below this heading; "": below the first one.
  void Group(std::string_view heading);
  void Positional(std::string_view name, std::string* target, std::string_view help,
                  bool required = true);
  void Positionals(std::string_view name, std::vector<std::string>* target, std::string_view help,
                   bool required = true);
  // Everything from the first word that is no option on (after "--", if given), untouched.
  void Rest(std::string_view name, std::vector<std::string>* target, std::string_view help);
  // Everything after the first "--", untouched. Not together with Rest.
  void After(std::string_view name, std::vector<std::string>* target, std::string_view help);
  // How many `things` ("traces") are done at a time: --jobs N, from 1. 0 in `target`, which it
  // keeps unless the option is given, stands for as many as there are cores.
  void Jobs(int64_t* target, std::string_view things);
  // Names of the options without their dashes: "output".
  std::vector<std::string> Names() const;
  // Shown below the options.
  void Footer(std::string_view text);

  enum class Outcome { kRun, kHelp, kError };
  struct Parsed {
    Outcome outcome = Outcome::kRun;
    std::string text;  // the help, or the error message
  };
  Parsed Parse(const std::vector<std::string>& args);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude
