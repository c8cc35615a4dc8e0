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

// The members of one object of the file. The first one of another type than expected is the error,
// with its place; what is absent or null is unknown.
class Members {
 public:
  // `json` outlives this and is an object, or nothing is in it.
  Members(std::string where, const Json& json, Status& status)
      : where_(std::move(where)), json_(json), status_(status) {
    if (!json.is_object() && !json.is_null()) Refuse(where_, "an object", json);
  }

  std::optional<std::string> Text(const char* key) const {
    const Json* value = Find(key, &Json::is_string, "a text");
    return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
  }
  std::optional<bool> Truth(const char* key) const {
    const Json* value = Find(key, &Json::is_boolean, "true or false");
    return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
  }
  std::optional<int64_t> Whole(const char* key, int64_t least, int64_t most = INT64_MAX) const {
    const std::string expected = most == INT64_MAX
                                     ? fmt::format("a whole number from {} on", least)
                                     : fmt::format("a whole number, {} to {}", least, most);
    const Json* value = Find(key, &Json::is_number_integer, expected);
    if (value == nullptr) return std::nullopt;
    const bool fits = !value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX;
    const int64_t number = fits ? value->get<int64_t>() : 0;
    if (fits && number >= least && number <= most) return number;
    Refuse(Place(key), expected, *value);
    return std::nullopt;
  }
  Members Object(const char* key) const {
    const Json* value = Find(key, &Json::is_object, "an object");
    return {Place(key), value == nullptr ? Absent() : *value, status_};
  }
  const Json& List(const char* key) const {
    const Json* value = Find(key, &Json::is_array, "a list");
    return value == nullptr ? Absent() : *value;
  }
  std::vector<std::string> Texts(const char* key) const {
    std::vector<std::string> texts;
    for (const Json& value : List(key)) {
      if (!value.is_string()) {
        Refuse(Place(key), "a list of texts", value);
        break;
      }
      texts.push_back(value.get<std::string>());
    }
    return texts;
  }
  std::string Place(std::string_view key) const { return fmt::format("{}.{}", where_, key); }

 private:
  static const Json& Absent() {
    static const Json kAbsent;
    return kAbsent;
  }
  const Json* Find(const char* key, bool (Json::*is)() const, std::string_view expected) const {
    const auto it = json_.is_object() ? json_.find(key) : json_.end();
    if (it == json_.end() || it->is_null()) return nullptr;
    if (((*it).*is)()) return &*it;
    Refuse(Place(key), expected, *it);
    return nullptr;
  }
  void Refuse(std::string_view where, std::string_view expected, const Json& found) const {
    if (!status_) return;
    constexpr size_t kShown = 40;
    std::string text = found.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
    if (text.size() > kShown) text = text.substr(0, kShown) + "...";
    status_ = BadInput(fmt::format("{}: found {}, expected {}", where, text, expected));
  }

  std::string where_;
  const Json& json_;
  Status& status_;
};

std::optional<StepTime> ParseStep(const Members& step) {
  const auto wall = step.Whole("wall_ns", 0);
  const auto cpu = step.Whole("cpu_ns", 0);
  const auto faults = step.Whole("minor_faults", 0);
  const auto switches = step.Whole("voluntary_switches", 0);
  step.Whole("steps", 1);
  const std::string signature = step.Text("signature").value_or("");
  if (!wall || !cpu) return std::nullopt;
  return StepTime{.signature = signature,
                  .wall = Nanos{*wall},
                  .cpu = Nanos{*cpu},
                  .minor_faults = faults,
                  .voluntary_switches = switches};
}

Result<JobRank> ParseRank(const std::string& where, const Json& json) {
  constexpr int64_t kMostThreads = 1 << 16;
  if (!json.is_object()) return BadInput(where + ": found no object, expected a rank's facts");
  Status status;
  const Members members(where, json, status);
  JobRank rank;
  rank.step_kind = members.Text("step_kind").value_or("");
  for (const char* file : {"host", "device", "native"}) members.Text(file);
  for (const Json& item : members.List("signatures")) {
    const Members one(members.Place("signatures"), item, status);
    rank.signatures.push_back({.id = one.Text("id").value_or(""),
                               .description = one.Text("description").value_or(""),
                               .seen = static_cast<uint64_t>(one.Whole("seen", 0).value_or(0)),
                               .timed = static_cast<uint64_t>(one.Whole("timed", 0).value_or(0)),
                               .recorded = one.Truth("recorded").value_or(false)});
    if (rank.signatures.back().recorded) rank.recorded_signature = rank.signatures.back().id;
  }
  for (const Json& item : members.List("timed_steps")) {
    const std::optional<StepTime> step =
        ParseStep(Members(members.Place("timed_steps"), item, status));
    ETUDE_RETURN_IF_ERROR(status);
    if (!step) {
      return BadInput(where +
                      ".timed_steps: expected objects with wall_ns and cpu_ns, whole numbers, not "
                      "negative");
    }
    rank.timed_steps.push_back(*step);
  }
  rank.recorded = ParseStep(members.Object("recorded_step"));
  if (rank.recorded && !rank.recorded->signature.empty()) {
    rank.recorded_signature = rank.recorded->signature;
  }
  rank.threads = members.Object("threads").Whole("intra_op", 1, kMostThreads);
  rank.mmap_threshold = members.Object("heap").Whole("mmap_threshold", 0);
  rank.compiled_kernels = members.Truth("compiled_kernels").value_or(false);
  rank.notes = members.Texts("notes");
  ETUDE_RETURN_IF_ERROR(status);
  return rank;
}

Result<JobFile> ParseJob(const std::string& path, const Json& json) {
  Status status;
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return BadInput(fmt::format("{}: expected \"format\": \"{}\"", path, kFormat));
  }
  const Json found = json.value("version", Json());
  if (!found.is_number_integer() || found < 1) {
    return BadInput(fmt::format("{}: expected a \"version\": a whole number from 1 on", path));
  }
  if (found > kVersion) {
    return BadInput(
        fmt::format("{}: found version {}, expected {} at most", path, found.dump(), kVersion));
  }
  const Members members(path + ": job", json, status);
  JobFile job;
  job.command = members.Texts("command");
  job.world_size = members.Whole("world_size", 1);
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
  return steps;
}

Result<JobFile> ParseJobFile(const std::string& path, std::string_view text,
                             const RunContext& context) {
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

Result<JobFile> ReadJobFile(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, context));
  return ParseJobFile(path, text, context);
}

}  // namespace etude
