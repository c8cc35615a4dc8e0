// The program `etude`: every command that does without libtorch. Commands that need it are run by
// `etude-torch`, which stands beside this program.

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
#include "src/cli/app/installation.h"
#include "src/cli/compat/compat.h"
#include "src/cli/generate/generate.h"
#include "src/cli/inspect/breakdown.h"
#include "src/cli/inspect/critical_path.h"
#include "src/cli/inspect/diff.h"
#include "src/cli/inspect/graph.h"
#include "src/cli/inspect/info.h"
#include "src/cli/inspect/memory.h"
#include "src/cli/inspect/report.h"
#include "src/cli/inspect/stats.h"
#include "src/cli/inspect/timeline.h"
#include "src/cli/inspect/validate.h"
#include "src/cli/record/compare.h"
#include "src/cli/record/record.h"
#include "src/cli/simulate/simulate.h"
#include "src/cli/simulate/sweep.h"
#include "src/cli/suite/suite.h"
#include "src/cli/tool/heap.h"
#include "src/cli/tool/torch_command.h"
#include "src/cli/torch/benchmark.h"
#include "src/cli/torch/replay.h"
#include "src/cli/trace/compose.h"
#include "src/cli/trace/convert.h"
#include "src/cli/trace/jsonize.h"
#include "src/cli/trace/link.h"
#include "src/cli/trace/merge.h"
#include "src/cli/trace/slice.h"

namespace etude {
namespace {

constexpr std::array kTorchCommands = {
    TorchCommand{"replay", kReplaySummary, "replay"},
    TorchCommand{"benchmark", kBenchmarkSummary, "benchmark"},
};

template <size_t kIndex>
std::unique_ptr<Command> MakeStub() {
  return MakeTorchCommandStub(kTorchCommands[kIndex]);
}

// Stands for the commands of `etude suite` in the overview.
std::unique_ptr<Command> MakeSuiteStub() {
  return MakeTorchCommandStub({"suite", kSuiteSummary, "suite"});
}

// In the order of the overview.
struct CommandEntry {
  std::string_view name;
  std::unique_ptr<Command> (*make)();
};
constexpr CommandEntry kCommands[] = {
    {"record", MakeRecordCommand},
    {"link", MakeLinkCommand},
    {"convert", MakeConvertCommand},
    {kTorchCommands[0].name, MakeStub<0>},
    {kTorchCommands[1].name, MakeStub<1>},
    {"suite", MakeSuiteStub},
    {"compare", MakeCompareCommand},
    {"compat", MakeCompatCommand},
    {"info", MakeInfoCommand},
    {"stats", MakeStatsCommand},
    {"breakdown", MakeBreakdownCommand},
    {"critical-path", MakeCriticalPathCommand},
    {"memory", MakeMemoryCommand},
    {"diff", MakeDiffCommand},
    {"report", MakeReportCommand},
    {"validate", MakeValidateCommand},
    {"slice", MakeSliceCommand},
    {"merge", MakeMergeCommand},
    {"compose", MakeComposeCommand},
    {"timeline", MakeTimelineCommand},
    {"graph", MakeGraphCommand},
    {"jsonize", MakeJsonizeCommand},
    {"generate", MakeGenerateCommand},
    {"simulate", MakeSimulateCommand},
    {"sweep", MakeSweepCommand},
};

void Become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
}

// Becomes etude-torch, which stands beside this program. The wheel has its sources instead: there a
// module of the package builds it where that has not been done, and becomes it. Returns only if
// there is neither.
void RunTorchCommand(const std::vector<std::string>& args) {
  std::vector<std::string> words = {ProgramFolder() + "/etude-torch"};
  words.insert(words.end(), args.begin(), args.end());
  Become(words);
  const std::optional<std::string> python = WheelPython();
  const Result<std::string> package = PythonFolder();
  if (!python || !package) return;
  Become(PythonCall(*python, *package, "torch_tool", "etude.torch_tool.main(sys.argv[1:])", args));
}

// What is left for the stub of a command that etude-torch has: which options are right only that
// program knows.
std::vector<std::string> WithoutOptions(const std::vector<std::string>& args, size_t words) {
  std::vector<std::string> left(args.begin(), args.begin() + static_cast<ptrdiff_t>(words));
  const bool help =
      std::ranges::any_of(args, [](const auto& arg) { return arg == "--help" || arg == "-h"; });
  if (help) left.emplace_back("--help");
  return left;
}

// `etude suite …`: what trains is a command of etude-torch, the rest needs no libtorch.
int RunSuite(std::vector<std::string> args) {
  if (args.size() > 1 && IsTrainingCommand(args[1])) {
    RunTorchCommand(args);
    args = WithoutOptions(args, 2);
  }
  args.erase(args.begin());
  return RunCommandLine("etude suite", SuiteCommands(), args);
}

// "help link" says what "link --help" says.
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
  if (!args.empty() && args[0] == "suite") return RunSuite(std::move(args));
  // One that is asked for is made alone: what the others are made of is not even loaded.
  const auto asked = std::ranges::find(kCommands, args.empty() ? "" : args[0], &CommandEntry::name);
  std::vector<std::unique_ptr<Command>> commands;
  for (const CommandEntry& entry : kCommands) {
    if (asked == std::end(kCommands) || asked == &entry) commands.push_back(entry.make());
  }
  return RunCommandLine("etude", std::move(commands), args);
}

}  // namespace
}  // namespace etude

int main(int argc, char** argv) { return etude::Main({argv + 1, argv + argc}); }
