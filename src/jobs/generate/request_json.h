#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/jobs/generate/generate_request.h"

namespace etude {

// Returns the key of an option in JSON and TOML, "micro_batches" for "--micro-batches".
std::string JsonKeyOf(std::string_view option);
// Returns the option of a key, which may also be spelled with '-'.
std::string OptionOfJsonKey(std::string_view key);
// Returns a value in JSON as a word of a command.
template <typename JsonValue>
std::string WordOfJson(const JsonValue& value) {
  return value.is_string() ? value.template get<std::string>() : value.dump();
}

// A file of a request: its key, and where its contents are.
struct RequestFile {
  const char* key;
  std::optional<std::string>* text;
};
// Returns the model, the device and the measured times. `request` must outlive the result.
std::vector<RequestFile> FilesOf(GenerateRequest& request);

// Returns a model's request as stored in plan.json (docs/formats/job_folder.md): the words and
// options that make the job, and the contents of its files.
nlohmann::ordered_json ToJson(const GenerateRequest& request);
// Reads the output of ToJson; nullopt for anything else.
std::optional<GenerateRequest> ReadGenerateRequest(const nlohmann::ordered_json& json);

// Returns the options of a request as JSON, by key ("dp", "micro_batches"), in the order of the
// help; options without a value are true.
nlohmann::ordered_json OptionsJson(const GenerateRequest& request);
// Returns the request as arguments of `etude generate`: "llm llama-3-8b --dp 4".
std::string CommandText(const GenerateRequest& request);

// Sets the options of `request` to those given in `edits`. An option that names a file drops the
// contents of the earlier file.
void Override(const GenerateRequest& edits, GenerateRequest& request);

}  // namespace etude
