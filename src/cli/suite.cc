#include "src/cli/suite.h"

#include "src/cli/suite_calibrate.h"
#include "src/cli/suite_compare.h"
#include "src/cli/suite_list.h"
#include "src/cli/suite_report.h"
#include "src/cli/suite_run.h"
#include "src/cli/suite_setup.h"

namespace etude {

std::vector<std::unique_ptr<Command>> SuiteCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeSuiteListCommand());
  commands.push_back(MakeSuiteSetupCommand());
  commands.push_back(MakeSuiteRunCommand());
  commands.push_back(MakeSuiteReportCommand());
  commands.push_back(MakeSuiteCompareCommand());
  commands.push_back(MakeSuiteCalibrateCommand());
  return commands;
}

}  // namespace etude
