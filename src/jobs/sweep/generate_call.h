#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/sim/sweep/sweep_point.h"
#include "src/sim/sweep/sweep_spec.h"

namespace etude {

// Keys of 'generate' in a sweep: what `etude generate` wants first, and its options.
SweepGenerateKeys GenerateKeys();

// The words of `etude generate` that make a job.
struct GenerateCall {
  std::vector<std::string> words;             // "llm", "llama-3-8b", "--dp", "8" …
  std::map<std::string, std::string> places;  // of the files that these name: where they are said
};

// Of a point whose job is generated. kBadInput with the point for what is missing.
Result<GenerateCall> GenerateCallOf(const SweepPoint& point);

// Whether there is what a point generates its job from: kBadInput with its place.
Status CheckGenerateOf(const SweepPoint& point);

}  // namespace etude
