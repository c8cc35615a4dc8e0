#include "src/cli/suite/suite.h"

#include <algorithm>
#include <iterator>

#include "src/cli/app/commands.h"
#include "src/cli/tool/torch_command.h"

namespace etude {
namespace {

std::unique_ptr<Command> MakeRunStub() {
  return MakeTorchCommandStub({"run", kSuiteRunSummary, "suite run"});
}

std::unique_ptr<Command> MakeCalibrateStub() {
  return MakeTorchCommandStub({"calibrate", kSuiteCalibrateSummary, "suite calibrate"});
}

std::unique_ptr<Command> MakeCharacterizeStub() {
  return MakeTorchCommandStub({"characterize", kSuiteCharacterizeSummary, "suite characterize"});
}

// In the order of the overview.
struct SuiteCommandEntry {
  std::string_view name;
  std::unique_ptr<Command> (*make)();
  bool trains = false;
};
constexpr SuiteCommandEntry kSuiteCommands[] = {
    {"list", MakeSuiteListCommand},
    {"setup", MakeSuiteSetupCommand},
    {"run", MakeRunStub, true},
    {"report", MakeSuiteReportCommand},
    {"compare", MakeSuiteCompareCommand},
    {"subset", MakeSuiteSubsetCommand},
    {"calibrate", MakeCalibrateStub, true},
    {"characterize", MakeCharacterizeStub, true},
    {"benchmark", MakeSuiteBenchmarkCommand},
    {"simulate", MakeSuiteSimulateCommand},
    {"boltzmann", MakeSuiteBoltzmannCommand},
};

}  // namespace

std::vector<std::unique_ptr<Command>> SuiteCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const SuiteCommandEntry& entry : kSuiteCommands) commands.push_back(entry.make());
  return commands;
}

bool IsTrainingCommand(std::string_view name) {
  const auto* found = std::ranges::find(kSuiteCommands, name, &SuiteCommandEntry::name);
  return found != std::end(kSuiteCommands) && found->trains;
}

}  // namespace etude
