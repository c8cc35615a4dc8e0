#pragma once

#include <string_view>
#include <vector>

#include "src/cli/app/options.h"
#include "src/jobs/generate/generate_request.h"

namespace etude {

// The heading of the help for options that all kinds of models take.
inline constexpr std::string_view kAllModels = "All models";

// Declares the option of a request that is called `name`. `what`: placeholder; of flags "".
void DeclareOption(const std::vector<GenerateOption>& request, std::string_view name,
                   std::string_view what, std::string_view help, Options& options);

// Declares the options of models, below headings that say which kinds take them.
void DeclareModelOptions(const std::vector<GenerateOption>& request, Options& options);

}  // namespace etude
