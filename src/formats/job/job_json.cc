#include "src/formats/job/job_json.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/json/json_document.h"

namespace etude {
namespace {

using Json = nlohmann::json;

constexpr DocumentKind kJobDocument = {.name = "a job.json", .format = kJobFormat};

std::optional<StepTime> ParseStep(const JsonMembers& step) {
  const auto wall = step.Whole("wall_ns", 0);
  const auto cpu = step.Whole("cpu_ns", 0);
  const auto faults = step.Whole("minor_faults", 0);
  const auto switches = step.Whole("voluntary_switches", 0);
  const auto stolen = step.Whole("stolen_ns", 0);
  const auto device = step.Whole("device_ns", 0);
  step.Whole("steps", 1);
  const std::string signature = step.Text("signature").value_or("");
  if (!wall || !cpu) return std::nullopt;
  return StepTime{.signature = signature,
                  .wall = Nanos{device.value_or(*wall)},
                  .cpu = Nanos{*cpu},
                  .host = device ? std::optional(Nanos{*wall}) : std::nullopt,
                  .minor_faults = faults,
                  .voluntary_switches = switches,
                  .stolen = stolen ? std::optional(Nanos{*stolen}) : std::nullopt};
}

Result<JobRank> ParseRank(const std::string& where, const Json& json) {
  constexpr int64_t kMostThreads = 1 << 16;
  if (!json.is_object()) return BadInput(where + ": expected an object with the facts of a rank");
  Status status;
  const JsonMembers members(where, json, status);
  JobRank rank;
  rank.step_kind = members.Text("step_kind").value_or("");
  for (const char* file : {"host", "device", "native"}) members.Text(file);
  for (const Json& item : members.List("signatures")) {
    const JsonMembers one(members.Place("signatures"), item, status);
    rank.signatures.push_back({.id = one.Text("id").value_or(""),
                               .description = one.Text("description").value_or(""),
                               .seen = static_cast<uint64_t>(one.Whole("seen", 0).value_or(0)),
                               .timed = static_cast<uint64_t>(one.Whole("timed", 0).value_or(0)),
                               .recorded = one.Truth("recorded").value_or(false)});
    if (rank.signatures.back().recorded) rank.recorded_signature = rank.signatures.back().id;
  }
  for (const Json& item : members.List("timed_steps")) {
    const std::optional<StepTime> step =
        ParseStep(JsonMembers(members.Place("timed_steps"), item, status));
    ETUDE_RETURN_IF_ERROR(status);
    if (!step) {
      return BadInput(where +
                      ".timed_steps: expected objects with wall_ns and cpu_ns, whole numbers, not "
                      "negative");
    }
    rank.timed_steps.push_back(*step);
  }
  rank.recorded = ParseStep(members.Object("recorded_step"));
  for (const Json& item : members.Object("recorded_step").List("signatures")) {
    if (!item.is_string()) {
      return BadInput(where + ": recorded_step.signatures: expected the ids of signatures");
    }
    rank.recorded_signatures.push_back(item.get<std::string>());
  }
  rank.recorded_early = members.Object("recorded_step").Truth("early").value_or(false);
  if (rank.recorded && !rank.recorded->signature.empty()) {
    rank.recorded_signature = rank.recorded->signature;
  }
  rank.threads = members.Object("threads").Whole("intra_op", 1, kMostThreads);
  rank.mmap_threshold = members.Object("heap").Whole("mmap_threshold", 0);
  const JsonMembers memory = members.Object("memory");
  const auto before = memory.Whole("before_steps_bytes", 0);
  const auto peak = memory.Whole("peak_bytes", 0);
  if (before && peak && *peak > *before) rank.memory_growth = Bytes{*peak - *before};
  rank.compiled_kernels = members.Truth("compiled_kernels").value_or(false);
  rank.notes = members.Texts("notes");
  ETUDE_RETURN_IF_ERROR(status);
  return rank;
}

Result<JobFile> ParseJob(const std::string& path, const Json& json) {
  Status status;
  const JsonMembers members(path + ": job", json, status);
  JobFile job;
  job.id = members.Text("job").value_or("");
  job.command = members.Texts("command");
  job.mark = members.Text("mark").value_or("");
  job.world_size = members.Whole("world_size", 1);
  job.torch = members.Object("versions").Text("torch").value_or("");
  job.processor = members.Object("machine").Text("cpu").value_or("");
  job.usable_cores = members.Object("machine").Whole("usable_cores", 1);
  ETUDE_RETURN_IF_ERROR(status);
  const Json ranks = json.value("ranks", Json());
  if (!ranks.is_object()) return BadInput(path + ": expected an object \"ranks\"");
  for (const auto& [key, value] : ranks.items()) {
    const auto number = ParseWhole(key);
    if (!number || *number < 0) {
      return BadInput(fmt::format("{}: ranks: found key '{}', expected a rank", path, key));
    }
    ETUDE_ASSIGN_OR_RETURN(job.ranks[*number],
                           ParseRank(fmt::format("{}: ranks.{}", path, *number), value));
  }
  return job;
}

}  // namespace

std::vector<StepTime> JobRank::ComparableSteps() const {
  std::vector<StepTime> steps;
  for (const StepTime& step : timed_steps) {
    if (step.signature == recorded_signature) steps.push_back(step);
  }
  return steps.empty() ? timed_steps : steps;
}

std::vector<StepTime> JobRank::StepsOfRecordedKinds() const {
  if (recorded_signatures.empty()) return timed_steps;
  std::vector<StepTime> steps;
  for (const StepTime& step : timed_steps) {
    if (std::ranges::count(recorded_signatures, step.signature) != 0) steps.push_back(step);
  }
  return steps.empty() ? timed_steps : steps;
}

std::vector<double> JobRank::StepWeights() const {
  std::map<std::string_view, double> timed;
  std::map<std::string_view, double> recorded_steps;
  for (const StepTime& step : timed_steps) timed[step.signature] += 1;
  for (const std::string& signature : recorded_signatures) recorded_steps[signature] += 1;
  std::vector<double> weights;
  for (const std::string& signature : recorded_signatures) {
    weights.push_back(timed[signature] / recorded_steps[signature]);
  }
  return weights;
}

Result<JobFile> ParseJobFile(const std::string& path, std::string_view text,
                             const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const Json json, ParseDocument(path, text, kJobDocument, context));
  return ParseJob(path, json);
}

Result<JobFile> ReadJobFile(const std::string& path, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const Json json, ReadDocument(path, kJobDocument, context));
  return ParseJob(path, json);
}

}  // namespace etude
