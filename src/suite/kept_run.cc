#include "src/suite/kept_run.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "src/suite/results/hyperparameters.h"

namespace etude::suite {
namespace {

constexpr std::string_view kYes = "yes";

tl::unexpected<Error> OtherRun(const std::string& path, std::string_view how) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found an earlier run {}; use another --output", path, how));
}

// Returns an option as on the command line.
std::string OptionText(std::string_view name, std::string_view value) {
  return value == kYes ? fmt::format("--{}", name) : fmt::format("--{} {}", name, value);
}

// Returns the settings of `options` that an older record without settings shows in other members.
NamedTexts ShownSettings(const RunRecord& kept, const RunOptions& options) {
  NamedTexts shown;
  const std::string_view optimizer = kept.optimizer;  // "adam 0.002"
  const size_t blank = optimizer.find(' ');
  if (options.batch) shown["batch"] = fmt::format("{}", kept.batch);
  if (options.threads) shown["threads"] = fmt::format("{}", kept.threads);
  if (blank != std::string_view::npos) {
    if (options.optimizer) shown["optimizer"] = optimizer.substr(0, blank);
    if (options.rate) shown["rate"] = optimizer.substr(blank + 1);
  }
  if (options.loss_scale && kept.loss_scale) {
    shown["loss-scale"] = fmt::format("{}", *kept.loss_scale);
  }
  if (kept.target_origin == kGivenTarget && kept.target) {
    shown["target"] = fmt::format("{}", *kept.target);
  }
  if (options.kind_in_name) {
    for (const auto& [name, value] : SettingsOf(options)) {
      if (value == kYes && name != "deterministic") shown[name] = value;
    }
  }
  return shown;
}

}  // namespace

NamedTexts SettingsOf(const RunOptions& options) {
  NamedTexts settings;
  const auto add = [&](const char* name, const auto& value) {
    if (value) settings[name] = fmt::format("{}", *value);
  };
  const auto add_flag = [&](const char* name, bool is_set) {
    if (is_set) settings[name] = kYes;
  };
  add("batch", options.batch);
  add("evaluate-every", options.evaluate_every);
  add("loss-scale", options.loss_scale);
  add("most-steps", options.most_steps);
  add("rate", options.rate);
  if (options.sparse) {
    settings["sparse"] = Name(options.sparse->method);
    settings["density"] = fmt::format("{}", options.sparse->density);
    settings["sparse-shares"] = Name(options.sparse->shares);
    if (options.sparse->kernels != SparseOptions::Kernels::kDense) {
      settings["sparse-kernels"] = Name(options.sparse->kernels);
    }
    if (options.sparse->method != SparseOptions::Method::kStatic) {
      settings["sparse-update-every"] = std::to_string(options.sparse->update_every);
    }
  }
  add("table-rows", options.table_rows);
  add("target", options.target);
  add("threads", options.threads);
  if (options.optimizer) settings["optimizer"] = Name(*options.optimizer);
  add_flag("deterministic", options.deterministic);
  add_flag("frozen", options.frozen);
  add_flag("shuffled-labels", options.shuffled_labels);
  add_flag("to-the-end", options.to_the_end);
  return settings;
}

std::string OtherDataSetText(std::string_view task, const std::string& data,
                             std::string_view data_set, std::string_view of_runs) {
  return fmt::format(
      "{}: {} contains the data set {}, but earlier runs used {}; use another --output", task, data,
      data_set, of_runs);
}

Status CheckKept(const std::string& path, const RunRecord& kept, const AskedRun& asked) {
  const RunOptions& options = asked.options;
  const auto same = [&](std::string_view what, const auto& there, const auto& here) -> Status {
    if (there == here) return {};
    return OtherRun(path, fmt::format("with {} {}, expected {}", what, there, here));
  };
  const auto as_named = [&](std::string_view what, const auto& there, const auto& here) -> Status {
    if (there == here) return {};
    return BadInput(
        fmt::format("{}: found a run with {} {}, expected {}", path, what, there, here));
  };
  ETUDE_RETURN_IF_ERROR(as_named("id", kept.task, asked.task));
  ETUDE_RETURN_IF_ERROR(as_named("scale", kept.scale, Name(options.scale)));
  ETUDE_RETURN_IF_ERROR(as_named("mode", kept.mode, asked.mode));
  ETUDE_RETURN_IF_ERROR(as_named("seed", kept.seed, static_cast<int64_t>(options.seed)));
  ETUDE_RETURN_IF_ERROR(same("device", kept.device, options.device));
  ETUDE_RETURN_IF_ERROR(same("precision", kept.precision, std::string(Name(options.precision))));
  ETUDE_RETURN_IF_ERROR(same("ranks", kept.ranks, asked.ranks));
  if (!kept.data_set.empty() && !asked.data_set.empty()) {
    ETUDE_RETURN_IF_ERROR(same("data set", kept.data_set, asked.data_set));
  }
  if (kept.mode == "steps") {
    const int64_t timed = std::ssize(kept.step_seconds);
    ETUDE_RETURN_IF_ERROR(same("iterations", timed, options.timed_steps));
    ETUDE_RETURN_IF_ERROR(same("warmup", kept.steps - timed, options.warmup));
  }
  NamedTexts there = kept.settings ? *kept.settings : ShownSettings(kept, options);
  NamedTexts here = SettingsOf(options);
  if (!kept.complete) {
    there.erase("most-steps");
    here.erase("most-steps");
  }
  for (const auto& [name, value] : there) {
    const auto found = here.find(name);
    if (found == here.end()) {
      return OtherRun(path,
                      fmt::format("with {}, expected a run without it", OptionText(name, value)));
    }
    ETUDE_RETURN_IF_ERROR(same(name, value, found->second));
  }
  for (const auto& [name, value] : here) {
    if (there.contains(name)) continue;
    return OtherRun(path, fmt::format("without {}{}", OptionText(name, value),
                                      kept.settings ? "" : ", according to its record"));
  }
  return {};
}

}  // namespace etude::suite
