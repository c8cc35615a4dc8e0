#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/result.h"
#include "src/base/text/ascii.h"

namespace etude {

// Command line of a tool by the rules of Python's argparse: `--name value`, `--name=value`, and
// unique prefixes of names. Targets must outlive Parse and contain the defaults.
class ToolArguments {
 public:
  explicit ToolArguments(std::string tool) : tool_(std::move(tool)) {}

  void Text(std::string_view name, std::string* target, bool required) {
    options_.push_back({.name = name, .text = target, .required = required});
  }
  void Whole(std::string_view name, int64_t* target, bool required) {
    options_.push_back({.name = name, .whole = target, .required = required});
  }
  void Flag(std::string_view name, bool* target) {
    options_.push_back({.name = name, .flag = target});
  }
  // Declares a value that is true for true, t, 1, yes or y, otherwise false.
  void Truth(std::string_view name, bool* target) {
    options_.push_back({.name = name, .truth = target});
  }

  // Removes the options at the beginning of `args`; all of `args` must be options unless
  // `stop_at_word`.
  Status Parse(std::vector<std::string>& args, bool stop_at_word = false) {
    size_t at = 0;
    for (; at < args.size(); ++at) {
      const std::string& arg = args[at];
      if (arg == "--help" || arg == "-h") {
        std::string names;
        for (const Option& option : options_) {
          names.append(names.empty() ? "" : ", ").append(option.name);
        }
        return Usage("it takes " + names);
      }
      if (!arg.starts_with("--")) {
        if (stop_at_word && !arg.starts_with("-")) break;
        return Usage("unrecognized argument " + arg);
      }
      const size_t equals = arg.find('=');
      ETUDE_ASSIGN_OR_RETURN(Option * option, Find(arg.substr(0, equals)));
      option->seen = true;
      if (option->flag != nullptr) {
        if (equals != std::string::npos) return Usage(arg + ": takes no value");
        *option->flag = true;
        continue;
      }
      if (equals == std::string::npos && at + 1 == args.size()) {
        return Usage(arg + ": expected a value");
      }
      const std::string value = equals != std::string::npos ? arg.substr(equals + 1) : args[++at];
      ETUDE_RETURN_IF_ERROR(Take(*option, value));
    }
    args.erase(args.begin(), args.begin() + static_cast<ptrdiff_t>(at));
    for (const Option& option : options_) {
      if (option.required && !option.seen) return Usage(fmt::format("needs {}", option.name));
    }
    return {};
  }

  tl::unexpected<Error> Usage(const std::string& problem) const {
    return MakeError(ErrorCode::kUsage, fmt::format("compat {}: {}", tool_, problem));
  }

 private:
  struct Option {
    std::string_view name;
    std::string* text = nullptr;
    int64_t* whole = nullptr;
    bool* flag = nullptr;
    bool* truth = nullptr;
    bool required = false;
    bool seen = false;
  };

  Result<Option*> Find(const std::string& name) {
    Option* found = nullptr;
    for (Option& option : options_) {
      if (option.name == name) return &option;
      if (!option.name.starts_with(name)) continue;
      if (found != nullptr) {
        return Usage(fmt::format("{} may be {} or {}", name, found->name, option.name));
      }
      found = &option;
    }
    if (found == nullptr) return Usage("unrecognized argument " + name);
    return found;
  }

  Status Take(const Option& option, const std::string& value) const {
    if (option.text != nullptr) {
      *option.text = value;
      return {};
    }
    if (option.truth != nullptr) {
      constexpr std::string_view kTrue[] = {"true", "t", "1", "yes", "y"};
      std::string lower = value;
      for (char& c : lower) c = Lower(c);
      *option.truth = std::ranges::find(kTrue, lower) != std::end(kTrue);
      return {};
    }
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, *option.whole);
    if (error != std::errc() || stop != end) {
      return Usage(fmt::format("{}: found '{}', expected a whole number", option.name, value));
    }
    return {};
  }

  std::string tool_;
  std::vector<Option> options_;
};

}  // namespace etude
