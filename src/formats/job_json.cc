#include "src/formats/job_json.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/quantity.h"
#include "src/formats/byte_source.h"

namespace etude {
namespace {

using Json = nlohmann::json;

// The format that this reads; later versions may add members.
constexpr std::string_view kFormat = "etude-job";
constexpr int64_t kVersion = 1;
constexpr size_t kFileBytesMax = size_t{256} << 20;

Result<std::string> ReadAll(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, context.limits));
  std::string text;
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
    if (chunk.empty()) return text;
    if (text.size() + chunk.size() > kFileBytesMax) {
      return BadInput(
          fmt::format("{}: larger than {} bytes, expected a job.json", path, kFileBytesMax));
    }
    text += chunk;
  }
}

// The member `key` of `json` if it has the type of T, else nullopt.
template <typename T>
std::optional<T> Get(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!it->is_boolean()) return std::nullopt;
  } else {
    if (!it->is_number_integer()) return std::nullopt;
  }
  return it->get<T>();
}

const Json& Member(const Json& json, const char* key) {
  static const Json kAbsent;
  const auto it = json.is_object() ? json.find(key) : json.end();
  return it == json.end() ? kAbsent : *it;
}

std::optional<StepTime> ParseStep(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto wall = Get<int64_t>(json, "wall_ns");
  const auto cpu = Get<int64_t>(json, "cpu_ns");
  if (!wall || !cpu || *wall < 0 || *cpu < 0) return std::nullopt;
  return StepTime{.signature = Get<std::string>(json, "signature").value_or(""),
                  .wall = Nanos{*wall},
                  .cpu = Nanos{*cpu}};
}

Result<JobRank> ParseRank(const std::string& where, const Json& json) {
  if (!json.is_object()) return BadInput(where + ": found no object, expected a rank's facts");
  JobRank rank;
  rank.step_kind = Get<std::string>(json, "step_kind").value_or("");
  for (const Json& item : Member(json, "signatures")) {
    if (!item.is_object()) return BadInput(where + ".signatures: expected objects");
    rank.signatures.push_back({.id = Get<std::string>(item, "id").value_or(""),
                               .description = Get<std::string>(item, "description").value_or(""),
                               .seen = Get<uint64_t>(item, "seen").value_or(0),
                               .timed = Get<uint64_t>(item, "timed").value_or(0),
                               .recorded = Get<bool>(item, "recorded").value_or(false)});
    if (rank.signatures.back().recorded) rank.recorded_signature = rank.signatures.back().id;
  }
  for (const Json& item : Member(json, "timed_steps")) {
    const std::optional<StepTime> step = ParseStep(item);
    if (!step) {
      return BadInput(where +
                      ".timed_steps: expected objects with wall_ns and cpu_ns, not "
                      "negative");
    }
    rank.timed_steps.push_back(*step);
  }
  rank.recorded = ParseStep(Member(json, "recorded_step"));
  if (rank.recorded && !rank.recorded->signature.empty()) {
    rank.recorded_signature = rank.recorded->signature;
  }
  if (const Json& threads = Member(json, "threads"); threads.is_object()) {
    rank.threads = Get<int64_t>(threads, "intra_op");
  }
  if (const Json& heap = Member(json, "heap"); heap.is_object()) {
    rank.mmap_threshold = Get<int64_t>(heap, "mmap_threshold");
  }
  for (const Json& note : Member(json, "notes")) {
    if (note.is_string()) rank.notes.push_back(note.get<std::string>());
  }
  return rank;
}

Result<JobFile> ParseJob(const std::string& path, const Json& json) {
  if (!json.is_object() || Get<std::string>(json, "format") != kFormat) {
    return BadInput(fmt::format("{}: expected \"format\": \"{}\"", path, kFormat));
  }
  const int64_t version = Get<int64_t>(json, "version").value_or(0);
  if (version < 1 || version > kVersion) {
    return BadInput(
        fmt::format("{}: found version {}, expected {} at most", path, version, kVersion));
  }
  JobFile job;
  for (const Json& word : Member(json, "command")) {
    if (word.is_string()) job.command.push_back(word.get<std::string>());
  }
  job.world_size = Get<int64_t>(json, "world_size");
  const Json& ranks = Member(json, "ranks");
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
  return steps;
}

Result<JobFile> ReadJobFile(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, context));
  size_t depth = 0;
  bool too_deep = false;
  const auto bound_depth = [&](int, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      too_deep = too_deep || ++depth > context.limits.depth;
    }
    if (event == Json::parse_event_t::object_end || event == Json::parse_event_t::array_end) {
      --depth;
    }
    return !too_deep;
  };
  const Json json = Json::parse(text, bound_depth, /*allow_exceptions=*/false);
  if (too_deep) return BadInput(path + ": nested too deeply (limit 'depth')");
  if (json.is_discarded()) return BadInput(path + ": not valid JSON, expected a job.json");
  return ParseJob(path, json);
}

}  // namespace etude
