#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "src/cli/app/options.h"
#include "src/jobs/generate/generate_request.h"

namespace etude {

// Heading of the help for options of all kinds of models.
inline constexpr std::string_view kAllModels = "All models";

// Declares the option `name` of a request. `what` is the placeholder ("" for flags).
void DeclareOption(const std::vector<GenerateOption>& request, std::string_view name,
                   std::string_view what, std::string_view help, Options& options);

// Declares the options of models, below headings with the kinds of models that take them.
void DeclareModelOptions(const std::vector<GenerateOption>& request, Options& options);

// Declares the options of models that edit the plan of a generated job, without those in `others`.
void DeclarePlanEdits(const std::vector<GenerateOption>& request,
                      std::span<const std::string_view> others, Options& options);

}  // namespace etude
