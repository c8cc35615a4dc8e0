#include "src/jobs/generate/request_json.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/jobs/generate/model_kind.h"

namespace etude {
namespace {

using RequestJson = nlohmann::ordered_json;

// The number of ranks follows from the plan.
bool IsRecorded(std::string_view option) { return option != "--ranks"; }

// Returns the value of a given option, and null for one that is not given.
RequestJson ValueOf(const GenerateOption& option) {
  return std::visit(
      [](const auto* target) -> RequestJson {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(target)>>;
        if constexpr (std::is_same_v<T, bool>) {
          return *target ? RequestJson(true) : RequestJson(nullptr);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return nullptr;  // patterns only
        } else {
          return *target ? RequestJson(**target) : RequestJson(nullptr);
        }
      },
      option.target);
}

// Returns the words of `etude generate`, without those of files.
std::vector<std::string> WordsOf(const std::string& what, const std::string& model,
                                 const RequestJson& options) {
  std::vector<std::string> words = {what, model};
  for (const auto& [key, value] : options.items()) {
    words.push_back(OptionOfJsonKey(key));
    if (!value.is_boolean()) words.push_back(WordOfJson(value));
  }
  return words;
}

}  // namespace

std::string JsonKeyOf(std::string_view option) {
  std::string key(option.substr(2));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string OptionOfJsonKey(std::string_view key) {
  std::string option = fmt::format("--{}", key);
  std::ranges::replace(option, '_', '-');
  return option;
}

std::vector<RequestFile> FilesOf(GenerateRequest& request) {
  return {{"model", &request.options.model_text},
          {"device", &request.device_text},
          {"measured", &request.measured_text}};
}

RequestJson OptionsJson(const GenerateRequest& request) {
  GenerateRequest copy = request;
  RequestJson options = RequestJson::object();
  for (const GenerateOption& option : OptionsOf(copy)) {
    RequestJson value = ValueOf(option);
    if (!value.is_null() && IsRecorded(option.name)) {
      options[JsonKeyOf(option.name)] = std::move(value);
    }
  }
  return options;
}

RequestJson ToJson(const GenerateRequest& request) {
  GenerateRequest copy = request;
  RequestJson json = {
      {"what", request.what}, {"model", request.model}, {"options", OptionsJson(request)}};
  RequestJson files = RequestJson::object();
  for (const RequestFile& file : FilesOf(copy)) {
    if (*file.text) files[file.key] = **file.text;
  }
  if (!files.empty()) json["files"] = std::move(files);
  return json;
}

std::optional<GenerateRequest> ReadGenerateRequest(const RequestJson& json) {
  const auto text_of = [](const RequestJson& object,
                          const char* key) -> std::optional<std::string> {
    if (!object.is_object()) return std::nullopt;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  };
  const auto what = text_of(json, "what");
  const auto model = text_of(json, "model");
  if (!what || !model || FindModelKind(*what) == nullptr) return std::nullopt;
  const RequestJson options = json.value("options", RequestJson());
  if (!options.is_object()) return std::nullopt;
  const bool is_flat = std::ranges::all_of(
      options, [](const RequestJson& value) { return value.is_primitive() && !value.is_null(); });
  if (!is_flat) return std::nullopt;
  Result<GenerateRequest> request = ParseGenerateWords(WordsOf(*what, *model, options));
  if (!request) return std::nullopt;
  const RequestJson files = json.value("files", RequestJson());
  for (const RequestFile& file : FilesOf(*request)) *file.text = text_of(files, file.key);
  return *std::move(request);
}

std::string CommandText(const GenerateRequest& request) {
  return fmt::format("{}",
                     fmt::join(WordsOf(request.what, request.model, OptionsJson(request)), " "));
}

void Override(const GenerateRequest& edits, GenerateRequest& request) {
  GenerateRequest copy = edits;
  const std::vector<GenerateOption> from = OptionsOf(copy);
  const std::vector<GenerateOption> to = OptionsOf(request);
  for (size_t i = 0; i < from.size(); ++i) {
    if (ValueOf(from[i]).is_null()) continue;
    std::visit([&](auto* target) { *target = *std::get<decltype(target)>(from[i].target); },
               to[i].target);
  }
  if (edits.device) request.device_text = edits.device_text;
  if (edits.measured) request.measured_text = edits.measured_text;
}

}  // namespace etude
