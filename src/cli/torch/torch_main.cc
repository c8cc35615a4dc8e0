// The program `etude-torch`, with the commands that need libtorch. Users call `etude`, which runs
// it.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/app/command.h"
#include "src/cli/app/commands.h"
#include "src/cli/torch/measuring_whatif.h"
#include "src/torch/memory/program_heap.h"

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "suite") {
    args.erase(args.begin());
    std::vector<std::unique_ptr<etude::Command>> commands;
    commands.push_back(etude::MakeSuiteRunCommand());
    commands.push_back(etude::MakeSuiteCalibrateCommand());
    commands.push_back(etude::MakeSuiteCharacterizeCommand());
    return etude::RunCommandLine("etude suite", std::move(commands), args);
  }
  // For replays only: suite/run.cc sets up the heap of the suite, and communications need a
  // program's.
  const bool replays = args.empty() || args[0] != "calibrate" ||
                       std::ranges::any_of(args, [](const std::string& arg) {
                         return arg.starts_with("--operators");
                       });
  if (replays) etude::FixHeap();
  std::vector<std::unique_ptr<etude::Command>> commands;
  commands.push_back(etude::MakeReplayCommand());
  commands.push_back(etude::MakeBenchmarkCommand());
  commands.push_back(etude::MakeCalibrateCommand());
  commands.push_back(etude::MakeMeasuringWhatIfCommand());
  return etude::RunCommandLine("etude-torch", std::move(commands), args);
}
