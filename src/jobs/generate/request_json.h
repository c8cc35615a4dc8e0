#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "src/jobs/generate/generate_request.h"

namespace etude {

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
