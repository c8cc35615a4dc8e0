#pragma once

#include <memory>
#include <string>

#include "src/cli/command.h"

namespace etude {

std::unique_ptr<Command> MakeCompatCommand();

// The one choice of `--compat` of other commands.
inline constexpr const char* kCompatChakra = "chakra-1.0.0";

// What `link --compat` does: the linked trace of `host` and `device`.
Status LinkAsChakra(const std::string& host, const std::string& device, const std::string& output,
                    const Console& console);

// What `convert --compat` does: the Chakra trace of `input`, a linked or host trace, or of `input`
// and `device` linked on the way; then the linked trace is written to `linked` as well, unless "".
Status ConvertAsChakra(const std::string& input, const std::string& device,
                       const std::string& output, const std::string& linked,
                       const Console& console);

}  // namespace etude
