#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/synth/device/misfit.h"

namespace etude {

// Of `etude generate WHAT MODEL --device DEVICE`: kUsage for what is not known, which names what
// is.
Status CheckGenerateWhat(std::string_view what);
// A pattern, model or file; `what` is one that is known.
Status CheckGenerateModel(std::string_view what, const std::string& model);
Status CheckGenerateDevice(const std::string& device);

// Whether `etude generate` with these words would make a job, as far as that can be said without
// making it.
Fits CheckGenerateWords(std::vector<std::string> words, const RunContext& context);

}  // namespace etude
