#include "src/jobs/sweep/generate_call.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/jobs/generate/generate_job.h"
#include "src/jobs/generate/request_json.h"

namespace etude {
namespace {

constexpr std::array<std::string_view, 2> kFirst = {"what", "model"};
// Options that a sweep sets itself.
constexpr std::array<std::string_view, 4> kOwn = {"output", "o", "to", "json"};

template <typename Names>
bool IsOneOf(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Returns whether a key names a file: models and devices in TOML, models in text and measured
// times.
bool IsFile(std::string_view what, std::string_view key, std::string_view text) {
  return key == "measured" || (key == "model" && what == "text") ||
         ((key == "model" || key == "device") && text.ends_with(".toml"));
}

}  // namespace

SweepGenerateKeys GenerateKeys() {
  SweepGenerateKeys keys = {.known = {kFirst.begin(), kFirst.end()},
                            .own = {kOwn.begin(), kOwn.end()}};
  constexpr auto kNoEdits = std::to_array<std::string_view>(
      {"ranks", "count", "size", "duration", "group_size", "native"});
  GenerateRequest request;
  for (const GenerateOption& option : OptionsOf(request)) {
    const std::string& key = keys.known.emplace_back(JsonKeyOf(option.name));
    if (!IsOneOf(kNoEdits, key)) keys.edits.push_back(key);
  }
  return keys;
}

// Reads, for example, generate = { what = "llm", model = "llama-3-8b", dp = 8, clip = true }.
Result<GenerateCall> GenerateCallOf(const SweepPoint& point) {
  const std::map<std::string, nlohmann::json>& settings = point.job.generate;
  for (const std::string_view key : kFirst) {
    const auto found = settings.find(std::string(key));
    if (found != settings.end() && found->second.is_string()) continue;
    return BadInput(fmt::format("{}: missing '{}' of generate", point.name, key));
  }
  const std::string what = WordOfJson(settings.at("what"));
  GenerateCall call;
  const auto word_of = [&](const std::string& key) {
    std::string text = WordOfJson(settings.at(key));
    if (!IsFile(what, key, text)) return text;
    if (const auto file = point.job.files.find(key); file != point.job.files.end()) {
      call.files.insert(*file);
      return text;
    }
    call.places[point.PathOf(text)] = point.generate_places.at(key);
    return point.PathOf(text);
  };
  call.words = {what, word_of("model")};
  for (const auto& [key, value] : settings) {
    if (IsOneOf(kFirst, key)) continue;
    std::string option = (key.size() == 1 ? "-" : "--") + key;
    std::ranges::replace(option, '_', '-');
    if (value.is_boolean()) {
      if (value.get<bool>()) call.words.push_back(option);
      continue;
    }
    call.words.push_back(option);
    call.words.push_back(word_of(key));
  }
  return call;
}

Result<GenerateRequest> RequestOf(const GenerateCall& call) {
  ETUDE_ASSIGN_OR_RETURN(GenerateRequest request, ParseGenerateWords(call.words));
  for (const RequestFile& file : FilesOf(request)) {
    const auto found = call.files.find(file.key);
    if (found != call.files.end()) *file.text = found->second;
  }
  return request;
}

Status CheckGenerateOf(const SweepPoint& point) {
  if (point.job.generate.empty()) return {};
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  const std::vector<std::string>& words = call.words;
  const auto placed = [&](const char* key, const Status& status) -> Status {
    if (status) return {};
    return BadInput(fmt::format("{}: {}", point.generate_places.at(key), status.error().message));
  };
  ETUDE_RETURN_IF_ERROR(placed("what", CheckGenerateWhat(words[0])));
  ETUDE_RETURN_IF_ERROR(placed("model", CheckGenerateModel(words[0], words[1])));
  const auto device = std::ranges::find(words, "--device");
  if (device == words.end() || device + 1 == words.end()) return {};
  return placed("device", CheckGenerateDevice(device[1]));
}

}  // namespace etude
