#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/text/bounded_number.h"

namespace etude {

// Command line of one subcommand. Declare all options before parsing. Targets must outlive parsing
// and contain the defaults. For a mistyped option the error suggests the nearest one.
class Options {
 public:
  Options(std::string_view command, std::string_view summary);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Declare an option. `names`: "-o,--output". `what`: placeholder in the help, "FILE".
  void Flag(std::string_view names, bool* target, std::string_view help);
  void Value(std::string_view names, std::string* target, std::string_view what,
             std::string_view help);
  // Declares an output: one file whose format is given by one of `endings` (".json"), or without
  // `endings` a folder or several files (PREFIX). Other endings are errors.
  void Output(std::string_view names, std::string* target, std::string_view what,
              std::string_view help, std::vector<std::string_view> endings);
  // Declares a repeatable output.
  void Outputs(std::string_view names, std::vector<std::string>* target, std::string_view what,
               std::string_view help, std::vector<std::string_view> endings);
  // An optional target stays empty unless the option is given; "" is a valid value.
  void Value(std::string_view names, std::optional<std::string>* target, std::string_view what,
             std::string_view help);
  // Declares an integer in decimal notation. Anything else, or a value out of bounds, is an error.
  void Value(std::string_view names, int64_t* target, std::string_view what, std::string_view help,
             Bounds bounds = {});
  void Value(std::string_view names, std::optional<int64_t>* target, std::string_view what,
             std::string_view help, Bounds bounds = {});
  // Declares a number greater than `above`. Anything else is an error.
  void Value(std::string_view names, std::optional<double>* target, std::string_view what,
             std::string_view help, double above = -std::numeric_limits<double>::infinity());
  // Declares a repeatable option.
  void Values(std::string_view names, std::vector<std::string>* target, std::string_view what,
              std::string_view help);
  void Choice(std::string_view names, std::string* target, std::vector<std::string> choices,
              std::string_view help);
  void Required(std::string_view name);
  // Puts later options under this heading in the help; "": the first heading.
  void Group(std::string_view heading);
  void Positional(std::string_view name, std::string* target, std::string_view help,
                  bool required = true);
  void Positionals(std::string_view name, std::vector<std::string>* target, std::string_view help,
                   bool required = true);
  // Declares a target for everything from the first non-option word on (after "--", if given),
  // unchanged.
  void Rest(std::string_view name, std::vector<std::string>* target, std::string_view help);
  // Declares a target for everything after the first "--", unchanged. Not combinable with Rest.
  void After(std::string_view name, std::vector<std::string>* target, std::string_view help);
  // Declares --jobs N, the number of `things` ("traces") processed concurrently, from 1. `target`
  // keeps its value without the option; 0 means the number of cores.
  void Jobs(int64_t* target, std::string_view things);
  // Returns the option names without dashes: "output".
  std::vector<std::string> Names() const;
  // Returns whether the option of this name, without dashes, may be given several times.
  bool IsRepeatable(const std::string& name) const;
  // Sets a text below the options.
  void Footer(std::string_view text);

  enum class Outcome { kRun, kHelp, kError };
  struct Parsed {
    Outcome outcome = Outcome::kRun;
    std::string text;  // help or error message
  };
  Parsed Parse(const std::vector<std::string>& args);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude
