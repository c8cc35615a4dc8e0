#include "src/report/certificate/run_facts.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/units.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns null for an unknown text.
OrderedJson TextJson(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

std::string CoresText(const MachineFacts& machine) {
  if (!machine.cores && !machine.usable_cores) return "";
  const int64_t usable = machine.usable_cores.value_or(*machine.cores);
  const int64_t all = machine.cores.value_or(usable);
  const std::string_view what = all == 1 ? "core" : "cores";
  return usable == all ? fmt::format("{} {}", all, what)
                       : fmt::format("{} of {} {}", usable, all, what);
}

}  // namespace

OrderedJson ToJson(const MachineFacts& machine) {
  OrderedJson gpus = OrderedJson::array();
  for (const MachineFacts::Gpu& gpu : machine.gpus) {
    gpus.push_back({{"name", gpu.name}, {"memory_bytes", OrNull(gpu.memory_bytes)}});
  }
  return {{"cpu", TextJson(machine.cpu)},
          {"architecture", TextJson(machine.architecture)},
          {"cores", OrNull(machine.cores)},
          {"usable_cores", OrNull(machine.usable_cores)},
          {"memory_bytes", OrNull(machine.memory_bytes)},
          {"system", TextJson(machine.system)},
          {"governor", TextJson(machine.governor)},
          {"gpus", std::move(gpus)}};
}

MachineFacts ParseMachineFacts(const JsonMembers& members) {
  MachineFacts machine{.cpu = members.Text("cpu").value_or(""),
                       .architecture = members.Text("architecture").value_or(""),
                       .cores = members.Whole("cores", 1),
                       .usable_cores = members.Whole("usable_cores", 1),
                       .memory_bytes = members.Whole("memory_bytes", 0),
                       .system = members.Text("system").value_or(""),
                       .governor = members.Text("governor").value_or(""),
                       .gpus = {}};
  for (const JsonMembers& gpu : members.Objects("gpus")) {
    machine.gpus.push_back(
        {.name = gpu.Text("name").value_or(""), .memory_bytes = gpu.Whole("memory_bytes", 0)});
  }
  return machine;
}

std::string ToText(const std::vector<MachineFacts::Gpu>& gpus) {
  std::vector<std::string> texts;
  for (const MachineFacts::Gpu& gpu : gpus) {
    texts.push_back(gpu.name + (gpu.memory_bytes
                                    ? fmt::format(" ({})", FormatBytes({*gpu.memory_bytes}))
                                    : ""));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string ToText(const MachineFacts& machine) {
  std::vector<std::string> parts;
  const auto add = [&](std::string part) {
    if (!part.empty()) parts.push_back(std::move(part));
  };
  add(machine.cpu);
  add(CoresText(machine));
  add(machine.memory_bytes ? FormatBytes({*machine.memory_bytes}) : "");
  add(machine.architecture);
  add(machine.system);
  if (parts.empty()) return "unknown";
  add("governor " + (machine.governor.empty() ? "unknown" : machine.governor));
  add(ToText(machine.gpus));
  return fmt::format("{}", fmt::join(parts, ", "));
}

NamedTexts ParseNamedTexts(const JsonMembers& members) {
  NamedTexts texts;
  if (members.empty()) return texts;
  for (const auto& [name, value] : members.json().items()) {
    if (value.is_string()) texts[name] = value.get<std::string>();
    if (value.is_number_integer()) texts[name] = value.dump();  // cuDNN's version
  }
  return texts;
}

OrderedJson ToJson(const ReplayFacts& replay) {
  OrderedJson skipped = OrderedJson::array();
  for (const ReplayFacts::Skipped& row : replay.skipped) {
    skipped.push_back({{"op", row.op}, {"reason", row.reason}, {"count", row.count}});
  }
  OrderedJson kinds = OrderedJson::array();
  for (const ReplayFacts::Kind& row : replay.kinds) {
    kinds.push_back({{"step", row.step},
                     {"steps", row.steps},
                     {"time_share", OrNull(row.time_share)},
                     {"replayed", row.replayed}});
  }
  return {{"torch", TextJson(replay.torch)},
          {"device", TextJson(replay.device)},
          {"trace", TextJson(replay.trace)},
          {"operators", replay.operators},
          {"operators_replayed", replay.operators_replayed},
          {"time_coverage", OrNull(replay.time_coverage)},
          {"same_kernels", OrNull(replay.same_kernels)},
          {"same_kernels_by_time", OrNull(replay.same_kernels_by_time)},
          {"skipped", std::move(skipped)},
          {"step_kinds", std::move(kinds)}};
}

ReplayFacts ParseReplayFacts(const JsonMembers& members) {
  ReplayFacts replay{.torch = members.Text("torch").value_or(""),
                     .device = members.Text("device").value_or(""),
                     .trace = members.Text("trace").value_or(""),
                     .operators = members.Whole("operators", 0).value_or(0),
                     .operators_replayed = members.Whole("operators_replayed", 0).value_or(0),
                     .time_coverage = members.Number("time_coverage"),
                     .same_kernels = members.Number("same_kernels"),
                     .same_kernels_by_time = members.Number("same_kernels_by_time"),
                     .skipped = {},
                     .kinds = {}};
  for (const JsonMembers& row : members.Objects("skipped")) {
    replay.skipped.push_back({.op = row.Text("op").value_or(""),
                              .reason = row.Text("reason").value_or(""),
                              .count = row.Whole("count", 0).value_or(0)});
  }
  for (const JsonMembers& row : members.Objects("step_kinds")) {
    replay.kinds.push_back({.step = row.Whole("step", 0).value_or(0),
                            .steps = row.Whole("steps", 0).value_or(0),
                            .time_share = row.Number("time_share"),
                            .replayed = row.Truth("replayed").value_or(false)});
  }
  return replay;
}

}  // namespace etude
