#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// A command that `etude-torch` has.
struct TorchCommand {
  std::string_view name;
  std::string_view summary;
  std::string_view words;  // what to type after "etude"
};

// Stands for the command in the overview and among the suggestions; to run it is kUnavailable.
std::unique_ptr<Command> MakeTorchCommandStub(const TorchCommand& command);

}  // namespace etude
