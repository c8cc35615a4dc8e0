// The program `etude`, with all commands that do not need libtorch. Other commands are run by
// `etude-torch`, in the same folder.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/cli/app/command.h"
#include "src/cli/app/commands.h"
#include "src/cli/app/installation.h"
#include "src/cli/compat/compat.h"
#include "src/cli/inspect/inspect_ranks.h"
#include "src/cli/suite/suite.h"
#include "src/cli/tool/heap.h"
#include "src/cli/tool/torch_command.h"

namespace etude {
namespace {

constexpr std::array kTorchCommands = {
    TorchCommand{"replay", kReplaySummary, "replay"},
    TorchCommand{"benchmark", kBenchmarkSummary, "benchmark"},
    TorchCommand{"calibrate", kCalibrateSummary, "calibrate"},
};

template <size_t kIndex>
std::unique_ptr<Command> MakeStub() {
  return MakeTorchCommandStub(kTorchCommands[kIndex]);
}

// Lists `etude suite` in the overview.
std::unique_ptr<Command> MakeSuiteStub() {
  return MakeTorchCommandStub({"suite", kSuiteSummary, "suite"});
}

// In the order of the overview; a command may begin a group.
struct CommandEntry {
  std::string_view name;
  std::unique_ptr<Command> (*make)();  // null: the commands of all inspections
  std::string_view group = "";
};
constexpr CommandEntry kCommands[] = {
    {"record", MakeRecordCommand, "Record and replay"},
    {"link", MakeLinkCommand},
    {"convert", MakeConvertCommand},
    {kTorchCommands[0].name, MakeStub<0>},
    {"compare", MakeCompareCommand},
    {kTorchCommands[1].name, MakeStub<1>},
    {"info", MakeInfoCommand, "Inspect"},
    {"validate", MakeValidateCommand},
    {"", nullptr},
    {"diff", MakeDiffCommand},
    {"report", MakeReportCommand},
    {"timeline", MakeTimelineCommand},
    {"graph", MakeGraphCommand},
    {"jsonize", MakeJsonizeCommand},
    {"slice", MakeSliceCommand, "Change"},
    {"compose", MakeComposeCommand},
    {"merge", MakeMergeCommand},
    {"whatif", MakeWhatIfCommand},
    {"generate", MakeGenerateCommand, "Simulate"},
    {"simulate", MakeSimulateCommand},
    {"sweep", MakeSweepCommand},
    {kTorchCommands[2].name, MakeStub<2>},
    {"compat", MakeCompatCommand},
    {"suite", MakeSuiteStub, "Train"},
};

// Calls `use(name, group, make)` for each command, in the order of the overview.
template <typename Use>
void ForEachCommand(Use use) {
  for (const CommandEntry& entry : kCommands) {
    if (entry.make != nullptr) {
      use(entry.name, entry.group, entry.make);
      continue;
    }
    for (const Inspection& inspection : Inspections()) {
      use(inspection.name, std::string_view(),
          [&inspection] { return MakeInspectionCommand(inspection); });
    }
  }
}

void Become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
}

// Replaces this process by etude-torch in the same folder. The wheel contains its sources instead:
// a module of the package builds and runs it. Returns only if both are missing.
void RunTorchCommand(const std::vector<std::string>& args) {
  std::vector<std::string> words = {ProgramFolder() + "/etude-torch"};
  words.insert(words.end(), args.begin(), args.end());
  Become(words);
  const std::optional<std::string> python = WheelPython();
  const Result<std::string> package = PythonFolder();
  if (!python || !package) return;
  Become(PythonCall(*python, *package, "torch_tool", "etude.torch_tool.main(sys.argv[1:])", args));
}

// Returns the arguments for the stub of an etude-torch command, without options, which only that
// program knows.
std::vector<std::string> WithoutOptions(const std::vector<std::string>& args, size_t words) {
  std::vector<std::string> left(args.begin(), args.begin() + static_cast<ptrdiff_t>(words));
  const bool help =
      std::ranges::any_of(args, [](const auto& arg) { return arg == "--help" || arg == "-h"; });
  if (help) left.emplace_back("--help");
  return left;
}

// Runs `etude suite …`. Training commands belong to etude-torch; the others do not need libtorch.
int RunSuite(std::vector<std::string> args) {
  if (args.size() > 1 && IsTrainingCommand(args[1])) {
    RunTorchCommand(args);
    args = WithoutOptions(args, 2);
  }
  args.erase(args.begin());
  return RunCommandLine("etude suite", SuiteCommands(), args);
}

// Converts "help link" to "link --help".
std::vector<std::string> WithoutHelpCommand(std::vector<std::string> args) {
  if (args.size() > 1 && args[0] == "help") return {args[1], "--help"};
  return args;
}

int Main(std::vector<std::string> args) {
  PrepareHeap();
  args = WithoutHelpCommand(std::move(args));
  if (!args.empty() && std::ranges::count(kTorchCommands, args[0], &TorchCommand::name) != 0) {
    RunTorchCommand(args);
    args = WithoutOptions(args, 1);
  }
  if (!args.empty() && args[0] == "whatif" && std::ranges::count(args, "--measure") != 0) {
    RunTorchCommand(args);
  }
  if (!args.empty() && args[0] == "suite") return RunSuite(std::move(args));
  // Makes only the requested command, so that libraries of others are not loaded.
  const std::string_view asked = args.empty() ? std::string_view() : args[0];
  bool is_command = false;
  ForEachCommand([&](std::string_view name, std::string_view /*group*/, const auto& /*make*/) {
    is_command = is_command || name == asked;
  });
  std::vector<std::unique_ptr<Command>> commands;
  CommandGroups groups;
  ForEachCommand([&](std::string_view name, std::string_view group, const auto& make) {
    if (is_command && name != asked) return;
    if (!group.empty()) groups.emplace(name, group);
    commands.push_back(make());
  });
  return RunCommandLine("etude", std::move(commands), args, groups);
}

}  // namespace
}  // namespace etude

int main(int argc, char** argv) { return etude::Main({argv + 1, argv + argc}); }
