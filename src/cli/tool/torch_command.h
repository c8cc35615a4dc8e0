#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// A command of `etude-torch`.
struct TorchCommand {
  std::string_view name;
  std::string_view summary;
  std::string_view words;  // words to type after "etude"
};

// Makes a stub for the overview and for suggestions; running it returns kUnavailable.
std::unique_ptr<Command> MakeTorchCommandStub(const TorchCommand& command);

}  // namespace etude
