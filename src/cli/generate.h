#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/cli/command.h"

namespace etude {

// Of `etude generate WHAT MODEL --device DEVICE`: kUsage for what is not known, which names what
// is.
Status CheckGenerateWhat(std::string_view what);
// A pattern, model or file; `what` is one that is known.
Status CheckGenerateModel(std::string_view what, const std::string& model);
Status CheckGenerateDevice(const std::string& device);

// Makes traces of patterns.
std::unique_ptr<Command> MakeGenerateCommand();

}  // namespace etude
