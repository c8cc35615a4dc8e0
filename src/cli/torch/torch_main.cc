// The program `etude-torch`, with the commands that need libtorch. Users call `etude`, which runs
// it.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/app/command.h"
#include "src/cli/app/commands.h"
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
  // For replays only: suite/run.cc sets up the heap of the suite, and calibrate needs a program's.
  if (args.empty() || args[0] != "calibrate") etude::FixHeap();
  std::vector<std::unique_ptr<etude::Command>> commands;
  commands.push_back(etude::MakeReplayCommand());
  commands.push_back(etude::MakeBenchmarkCommand());
  commands.push_back(etude::MakeCalibrateCommand());
  return etude::RunCommandLine("etude-torch", std::move(commands), args);
}
