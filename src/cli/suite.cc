#include "src/cli/suite.h"

#include "src/cli/suite_list.h"
#include "src/cli/suite_run.h"

namespace etude {

std::vector<std::unique_ptr<Command>> SuiteCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeSuiteListCommand());
  commands.push_back(MakeSuiteRunCommand());
  return commands;
}

}  // namespace etude
