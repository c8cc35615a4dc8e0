#include "src/cli/app/options.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "src/base/text/nearest.h"
#include "src/jobs/file_endings.h"

namespace etude {

struct Options::Impl {
  CLI::App app;
  std::vector<std::string>* rest_target = nullptr;
  std::vector<std::string>* after_target = nullptr;
  size_t positionals = 0;
  std::string first_group;  // CLI11's own
};

Options::Options(std::string_view command, std::string_view summary)
    : impl_(std::make_unique<Impl>()) {
  impl_->app.name("etude " + std::string(command));
  impl_->app.description(std::string(summary));
  impl_->app.get_formatter()->column_width(32);
  impl_->app.set_help_flag("-h,--help", "show this help");
  impl_->first_group = impl_->app.option_defaults()->get_group();
}

Options::~Options() = default;

namespace {

CLI::Option* Described(CLI::Option* option, std::string_view what) {
  return option->type_name(std::string(what));
}

// Throws the error of an option's value, as CLI11 requires.
template <typename T>
T Taken(const std::string& option, const Result<T>& value) {
  if (!value) throw CLI::ValidationError(option, value.error().message);
  return *value;
}

// Returns "--rank" for "-r,--rank".
std::string_view LongName(std::string_view names) { return names.substr(names.rfind(',') + 1); }

CLI::Option* AddNumber(CLI::App& app, std::string_view names, std::string_view help, Bounds bounds,
                       std::function<void(int64_t)> set) {
  const std::string name(LongName(names));
  return app
      .add_option_function<std::string>(
          std::string(names),
          [name, bounds, set = std::move(set)](const std::string& text) {
            set(Taken(name, ParseWithin(text, bounds)));
          },
          std::string(help))
      ->take_last();
}

}  // namespace

void Options::Flag(std::string_view names, bool* target, std::string_view help) {
  impl_->app.add_flag(std::string(names), *target, std::string(help));
}

namespace {

// For targets without a default, an empty text means that the option was not given.
auto IsText(std::string_view what) {
  return [what = std::string(what)](const std::string& text) {
    return text.empty() ? fmt::format("found '', expected {}", what) : "";
  };
}

auto IsOutput(std::string_view what, std::vector<std::string_view> endings) {
  const char* other = what == "PREFIX"                     ? "a prefix of file names"
                      : what == "FILE" && !endings.empty() ? ""
                                                           : "a folder";
  return [other = std::string_view(other), endings = std::move(endings)](const std::string& text) {
    return WrongEnding(text, endings, other);
  };
}

}  // namespace

void Options::Value(std::string_view names, std::string* target, std::string_view what,
                    std::string_view help) {
  Described(impl_->app.add_option(std::string(names), *target, std::string(help)), what)
      ->check(IsText(what), "")
      ->take_last()
      ->capture_default_str();
}

void Options::Output(std::string_view names, std::string* target, std::string_view what,
                     std::string_view help, std::vector<std::string_view> endings) {
  Value(names, target, what, help);
  impl_->app.get_option(std::string(LongName(names)))
      ->check(IsOutput(what, std::move(endings)), "");
}

void Options::Outputs(std::string_view names, std::vector<std::string>* target,
                      std::string_view what, std::string_view help,
                      std::vector<std::string_view> endings) {
  Values(names, target, what, help);
  impl_->app.get_option(std::string(LongName(names)))
      ->check(IsOutput(what, std::move(endings)), "");
}

void Options::Value(std::string_view names, std::optional<std::string>* target,
                    std::string_view what, std::string_view help) {
  Described(impl_->app.add_option_function<std::string>(
                std::string(names), [target](const std::string& text) { *target = text; },
                std::string(help)),
            what)
      ->take_last();
}

void Options::Value(std::string_view names, int64_t* target, std::string_view what,
                    std::string_view help, Bounds bounds) {
  Described(AddNumber(impl_->app, names, help, bounds, [target](int64_t n) { *target = n; }), what)
      ->default_str(std::to_string(*target));
}

void Options::Value(std::string_view names, std::optional<int64_t>* target, std::string_view what,
                    std::string_view help, Bounds bounds) {
  Described(AddNumber(impl_->app, names, help, bounds, [target](int64_t n) { *target = n; }), what);
}

void Options::Value(std::string_view names, std::optional<double>* target, std::string_view what,
                    std::string_view help, double above) {
  const std::string name(LongName(names));
  const auto set = [name, above, target](const std::string& text) {
    *target = Taken(name, ParseAbove(text, above));
  };
  Described(impl_->app.add_option_function<std::string>(std::string(names), set, std::string(help)),
            what)
      ->take_last();
}

void Options::Values(std::string_view names, std::vector<std::string>* target,
                     std::string_view what, std::string_view help) {
  Described(impl_->app.add_option(std::string(names), *target, std::string(help)), what)
      ->check(IsText(what), "")
      ->allow_extra_args(false);
}

void Options::Choice(std::string_view names, std::string* target, std::vector<std::string> choices,
                     std::string_view help) {
  const std::string name(LongName(names));
  const std::string list = fmt::format("{}", fmt::join(choices, ", "));
  impl_->app
      .add_option_function<std::string>(
          std::string(names),
          [name, list, choices = std::move(choices), target](const std::string& text) {
            if (std::ranges::count(choices, text) == 0) {
              throw CLI::ValidationError(name,
                                         fmt::format("found '{}', expected one of {}", text, list));
            }
            *target = text;
          },
          std::string(help))
      ->type_name("{" + list + "}")
      ->default_str(*target)
      ->take_last();
}

void Options::Required(std::string_view name) {
  impl_->app.get_option(std::string(name))->required();
}

void Options::Group(std::string_view heading) {
  impl_->app.option_defaults()->group(heading.empty() ? impl_->first_group : std::string(heading));
}

void Options::Positional(std::string_view name, std::string* target, std::string_view help,
                         bool required) {
  Described(impl_->app.add_option(std::string(name), *target, std::string(help)), "")
      ->required(required);
  ++impl_->positionals;
}

void Options::Positionals(std::string_view name, std::vector<std::string>* target,
                          std::string_view help, bool required) {
  Described(impl_->app.add_option(std::string(name), *target, std::string(help)), "")
      ->required(required);
  ++impl_->positionals;
}

void Options::Rest(std::string_view name, std::vector<std::string>* target, std::string_view help) {
  Described(impl_->app.add_option(std::string(name), *target, std::string(help)), "");
  impl_->rest_target = target;
}

void Options::After(std::string_view name, std::vector<std::string>* target,
                    std::string_view help) {
  impl_->app.footer("-- " + std::string(name) + "  " + std::string(help));
  impl_->after_target = target;
}

void Options::Jobs(int64_t* target, std::string_view things) {
  Described(AddNumber(impl_->app, "--jobs",
                      fmt::format("process N {} at a time (default: number of cores)", things),
                      {.least = 1}, [target](int64_t n) { *target = n; }),
            "N");
}

std::vector<std::string> Options::Names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : impl_->app.get_options()) {
    if (option == impl_->app.get_help_ptr()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

bool Options::IsRepeatable(const std::string& name) const {
  const CLI::Option* option = impl_->app.get_option_no_throw("--" + name);
  return option != nullptr && option->get_expected_max() > 1;
}

void Options::Footer(std::string_view text) {
  const std::string before = impl_->app.get_footer();
  impl_->app.footer(before + (before.empty() ? "" : "\n") + std::string(text));
}

namespace {

// Returns the first undeclared word, with the nearest option; "" if there is none.
std::string FirstExtra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return {};
  const std::string& extra = extras.front();
  if (!extra.starts_with("-") || extra == "-") return "unexpected argument '" + extra + "'";
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return "unknown option '" + extra + "'" + DidYouMean(extra, known);
}

// CLI11 prints two blank lines between groups.
std::string WithoutDoubleGaps(std::string help) {
  constexpr std::string_view kGap = "\n\n\n";
  for (size_t at = 0; (at = help.find(kGap, at)) != std::string::npos;) help.erase(at, 1);
  return help;
}

// Describes the first missing required argument or option.
std::string FirstMissing(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() != 0) continue;
    return fmt::format("missing {} '{}': {}", option->get_positional() ? "argument" : "option",
                       option->get_name(), option->get_description());
  }
  return "an argument or option is missing";
}

}  // namespace

Options::Parsed Options::Parse(const std::vector<std::string>& args) {
  std::vector<std::string> own = args;
  std::vector<std::string> rest;
  if (impl_->rest_target != nullptr) {
    // The rest begins at the first word that is neither an option nor its value.
    size_t i = 0;
    while (i < own.size() && own[i].starts_with("-") && own[i] != "--") {
      const bool has_value = own[i].find('=') != std::string::npos;
      const std::string name = own[i].substr(0, own[i].find('='));
      const CLI::Option* option = impl_->app.get_option_no_throw(name);
      const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
      i += takes_value && !has_value ? 2 : 1;
    }
    i = std::min(i, own.size());
    const size_t rest_begin = i < own.size() && own[i] == "--" ? i + 1 : i;
    rest.assign(own.begin() + static_cast<ptrdiff_t>(rest_begin), own.end());
    own.resize(i);
  }
  if (const auto dashes = std::ranges::find(own, "--");
      impl_->after_target != nullptr && dashes != own.end()) {
    rest.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  }
  try {
    std::ranges::reverse(own);  // CLI11 expects a stack
    impl_->app.parse(own);
  } catch (const CLI::CallForHelp&) {
    return {Outcome::kHelp, WithoutDoubleGaps(impl_->app.help())};
  } catch (const CLI::ExtrasError&) {
    return {Outcome::kError, FirstExtra(impl_->app)};
  } catch (const CLI::RequiredError&) {
    // A mistyped option is more informative than the missing one that it causes.
    const std::string extra = FirstExtra(impl_->app);
    return {Outcome::kError, extra.empty() ? FirstMissing(impl_->app) : extra};
  } catch (const CLI::ArgumentMismatch& error) {
    // The message begins with the option's name.
    const std::string text = error.what();
    return {Outcome::kError, text.substr(0, text.find(':')) + ": found nothing, expected a value"};
  } catch (const CLI::ParseError& error) {
    return {Outcome::kError, error.what()};
  }
  // Standard input can be read only once.
  ptrdiff_t dashes = 0;
  for (const CLI::Option* option : impl_->app.get_options()) {
    if (option->get_positional()) dashes += std::ranges::count(option->results(), "-");
  }
  if (dashes > 1) return {Outcome::kError, "'-' (standard input) was given more than once"};
  auto* const target = impl_->rest_target != nullptr ? impl_->rest_target : impl_->after_target;
  if (target != nullptr) *target = std::move(rest);
  return {Outcome::kRun, ""};
}

}  // namespace etude
