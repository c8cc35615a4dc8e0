#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

inline constexpr std::string_view kGlooRules = "gloo";

// Returns the algorithms that c10d's Gloo backend runs: docs/models/etude_1.md.
std::vector<AlgorithmRule> GlooRules();

// Parses a table of algorithms by size: docs/formats/algorithms.md. kBadInput with `path` and the
// place.
Result<std::vector<AlgorithmRule>> ParseAlgorithmRules(const std::string& text,
                                                       const std::string& path);

// Uses Gloo's rules if `name` is kGlooRules, and else those of `text`, the content of the file
// `name`. One algorithm applies to all dimensions. Collectives of a rule's type that no rule fits
// use rings, unless the system has algorithms for them. kBadInput for others than one algorithm or
// one for each dimension.
Status UseAlgorithmRules(const std::string& text, const std::string& name, SimMachine& machine);

// Gives each dimension of a machine with a graph an algorithm: a single one of a system file at
// `path` counts for all. kBadInput for other counts, and for trees of collectives that have none.
Status SpreadAlgorithms(const std::string& path, SimMachine& machine);

}  // namespace etude
