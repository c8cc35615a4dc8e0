#pragma once

#include <memory>
#include <string_view>

#include "src/cli/app/command.h"

namespace etude {

// One factory per command, implemented in the file of its name.
std::unique_ptr<Command> MakeRecordCommand();
std::unique_ptr<Command> MakeLinkCommand();
std::unique_ptr<Command> MakeConvertCommand();
std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeBenchmarkCommand();
std::unique_ptr<Command> MakeCompareCommand();
std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeValidateCommand();
std::unique_ptr<Command> MakeDiffCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeTimelineCommand();
std::unique_ptr<Command> MakeGraphCommand();
std::unique_ptr<Command> MakeJsonizeCommand();
std::unique_ptr<Command> MakeSliceCommand();
std::unique_ptr<Command> MakeComposeCommand();
std::unique_ptr<Command> MakeMergeCommand();
std::unique_ptr<Command> MakeGenerateCommand();
std::unique_ptr<Command> MakeSimulateCommand();
std::unique_ptr<Command> MakeSweepCommand();
std::unique_ptr<Command> MakeCalibrateCommand();
std::unique_ptr<Command> MakeWhatIfCommand();
std::unique_ptr<Command> MakeCompatCommand();
std::unique_ptr<Command> MakeSuiteListCommand();
std::unique_ptr<Command> MakeSuiteSetupCommand();
std::unique_ptr<Command> MakeSuiteReportCommand();
std::unique_ptr<Command> MakeSuiteCompareCommand();
std::unique_ptr<Command> MakeSuiteBoltzmannCommand();
std::unique_ptr<Command> MakeSuiteSubsetCommand();
std::unique_ptr<Command> MakeSuiteBenchmarkCommand();
std::unique_ptr<Command> MakeSuiteSimulateCommand();
std::unique_ptr<Command> MakeSuiteRunCommand();
std::unique_ptr<Command> MakeSuiteCalibrateCommand();
std::unique_ptr<Command> MakeSuiteCharacterizeCommand();

// Summaries of `etude-torch` commands, shared with the overview of `etude`.
inline constexpr std::string_view kReplaySummary =
    "run the operators of a recorded step again and compare times";
inline constexpr std::string_view kBenchmarkSummary =
    "turn a recorded step into a C++ and a Python program that need only PyTorch";
inline constexpr std::string_view kCalibrateSummary =
    "measure communications and rates of this machine for simulations, and fit a network";
inline constexpr std::string_view kSuiteRunSummary = "train tasks and measure the time";
inline constexpr std::string_view kSuiteCalibrateSummary =
    "determine targets with some seeds and check them with others";
inline constexpr std::string_view kSuiteCharacterizeSummary =
    "measure what characterizes tasks: size, work, operators, epochs";

}  // namespace etude
