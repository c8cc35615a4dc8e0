#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/jobs/generate/generate_request.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Returns the keys of 'generate' in a sweep: the first words of `etude generate`, and its options.
SweepGenerateKeys GenerateKeys();

// The words of `etude generate` that make a job.
struct GenerateCall {
  std::vector<std::string> words;             // "llm", "llama-3-8b", "--dp", "8" …
  std::map<std::string, std::string> places;  // the place where each of their files is named
  std::map<std::string, std::string> files;   // contents of files that are not read, by key
};

// Returns the words for a point whose job is generated. Returns kBadInput with the point if
// something is missing.
Result<GenerateCall> GenerateCallOf(const SweepPoint& point);

// Returns the request of the words. Returns kUsage for invalid options.
Result<GenerateRequest> RequestOf(const GenerateCall& call);

// Checks that the inputs of a point's generated job exist. Returns kBadInput with its place.
Status CheckGenerateOf(const SweepPoint& point);

}  // namespace etude
