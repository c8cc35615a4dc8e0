#include "src/cli/compat/compat.h"
#include "src/cli/app/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/text/nearest.h"
#include "src/cli/compat/compat_astra_sim.h"
#include "src/cli/compat/compat_stage.h"
#include "src/cli/tool/tool_arguments.h"
#include "src/compat/chakra/chakra_tools.h"

namespace etude {
namespace {

Status RunConverter(std::vector<std::string> args, const Console& console) {
  std::string log;  // its log is not reproduced
  ToolArguments global("chakra_converter");
  global.Text("--log-filename", &log, false);
  ETUDE_RETURN_IF_ERROR(global.Parse(args, /*stop_at_word=*/true));
  if (args.empty()) return global.Usage("needs PyTorch or Text");
  const std::string kind = args[0];
  args.erase(args.begin());
  std::string input;
  std::string output;
  ToolArguments parser("chakra_converter " + kind);
  parser.Text("--input", &input, true);
  parser.Text("--output", &output, true);
  if (kind == "PyTorch") {
    bool simulate = false;  // its findings are only in the log
    parser.Flag("--simulate", &simulate);
    ETUDE_RETURN_IF_ERROR(parser.Parse(args));
    return compat::ConvertPyTorch(input, output, console.context());
  }
  if (kind == "Text") {
    compat::TextRequest request;
    parser.Whole("--num-npus", &request.num_npus, true);
    parser.Whole("--num-passes", &request.num_passes, true);
    ETUDE_RETURN_IF_ERROR(parser.Parse(args));
    request.input = input;
    request.output = output;
    return compat::ConvertTextFile(request, console.context());
  }
  return global.Usage("found " + kind + ", expected PyTorch or Text");
}

Status RunTraceLink(std::vector<std::string> args, const Console& console) {
  int64_t rank = 0;       // only a label in Chakra's analysis
  std::string log_level;  // its log is not reproduced
  compat::LinkRequest request;
  ToolArguments parser("chakra_trace_link");
  parser.Whole("--rank", &rank, true);
  parser.Text("--chakra-host-trace", &request.host, true);
  parser.Text("--chakra-device-trace", &request.device, true);
  parser.Text("--output-file", &request.linked, true);
  parser.Text("--log-level", &log_level, false);
  parser.Text("--et", &request.et, false);  // additional option: output of the converter
  ETUDE_RETURN_IF_ERROR(parser.Parse(args));
  return compat::TraceLink(request, console.context());
}

Status RunJsonizer(std::vector<std::string> args, const Console& console) {
  std::string input;
  std::string output;
  ToolArguments parser("chakra_jsonizer");
  parser.Text("--input_filename", &input, true);
  parser.Text("--output_filename", &output, true);
  ETUDE_RETURN_IF_ERROR(parser.Parse(args));
  return compat::Jsonize(input, output, console.context());
}

Status RunGenerator(std::vector<std::string> args, const Console&) {
  compat::GeneratorRequest request;
  ToolArguments parser("chakra_generator");
  parser.Whole("--num_npus", &request.num_npus, false);
  parser.Whole("--default_runtime", &request.default_runtime, false);
  parser.Whole("--default_tensor_size", &request.default_tensor_size, false);
  parser.Whole("--default_comm_size", &request.default_comm_size, false);
  ETUDE_RETURN_IF_ERROR(parser.Parse(args));
  return compat::Generate(request);
}

// For tools whose only result is their output file.
template <Status (*run)(std::vector<std::string>, const Console&)>
Result<ExitCode> Done(std::vector<std::string> args, const Console& console) {
  ETUDE_RETURN_IF_ERROR(run(std::move(args), console));
  return ExitCode::kOk;
}

struct Tool {
  std::string_view name;
  Result<ExitCode> (*run)(std::vector<std::string> args, const Console& console);
};

constexpr Tool kTools[] = {
    {"chakra_trace_link", Done<RunTraceLink>},
    {"chakra_converter", Done<RunConverter>},
    {"chakra_jsonizer", Done<RunJsonizer>},
    {"chakra_generator", Done<RunGenerator>},
    {"stage", Done<RunStage>},
    {"astra-sim", RunAstraSim},
};

class CompatCommand : public Command {
 public:
  std::string_view name() const override { return "compat"; }
  std::string_view summary() const override {
    return "drop-in replacement for Chakra 1.0.0, STAGE and ASTRA-sim tools";
  }

  void Declare(Options& options) override {
    options.Rest("tool", &args_, "the tool's name, and its command line");
    std::string footer = "Tools:";
    for (const Tool& tool : kTools) footer += fmt::format(" {}", tool.name);
    options.Footer(footer);
  }

  Result<ExitCode> Run(const Console& console) override {
    if (args_.empty()) return MakeError(ErrorCode::kUsage, "compat: needs the name of a tool");
    std::vector<std::string> names;
    for (const Tool& tool : kTools) {
      names.emplace_back(tool.name);
      if (tool.name != args_[0]) continue;
      if (WantsHelp()) return PrintHelp(tool, console);
      return tool.run({args_.begin() + 1, args_.end()}, console);
    }
    return MakeError(ErrorCode::kUsage,
                     fmt::format("compat: no tool '{}'{}", args_[0], MeantOrAll(args_[0], names)));
  }

 private:
  bool WantsHelp() const {
    return std::ranges::any_of(
        args_, [](const std::string& arg) { return arg == "-h" || arg == "--help"; });
  }

  // Prints the tool's help.
  Result<ExitCode> PrintHelp(const Tool& tool, const Console& console) const {
    const auto begin = args_.begin() + 1;
    std::vector<std::string> words(
        begin, std::find_if(begin, args_.end(),
                            [](const std::string& arg) { return arg.starts_with("-"); }));
    words.emplace_back("--help");
    const Result<ExitCode> said = tool.run(std::move(words), console);
    if (!said) console.Print(said.error().message + "\n");
    return ExitCode::kOk;
  }

  std::vector<std::string> args_;
};

}  // namespace

std::unique_ptr<Command> MakeCompatCommand() { return std::make_unique<CompatCommand>(); }

}  // namespace etude
