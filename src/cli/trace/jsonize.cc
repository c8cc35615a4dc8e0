#include "src/cli/app/commands.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/cli/compat/compat.h"
#include "src/compat/chakra/chakra_tools.h"
#include "src/formats/chakra/chakra_json.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/transform/to_chakra.h"

namespace etude {
namespace {

class JsonizeCommand : public Command {
 public:
  std::string_view name() const override { return "jsonize"; }
  std::string_view summary() const override {
    return "write a trace as one JSON document of Chakra messages";
  }

  void Declare(Options& options) override {
    options.Positional("trace", &input_, "trace in any format, or - for stdin");
    options.Output("-o,--output", &output_, "FILE", "file to write (default: standard output)",
                   {".json"});
    options.Choice("--compat", &compat_, {kCompatChakra},
                   "write output byte-identical to this version of chakra_jsonizer");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input_}));
    if (!compat_.empty()) {
      ETUDE_RETURN_IF_ERROR(compat::Jsonize(input_, output_, console.context()));
      return ExitCode::kOk;
    }
    ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(output_));
    const ByteSink sink = [&](std::string_view bytes) { return file.Write(bytes); };
    ETUDE_ASSIGN_OR_RETURN(const ChakraJsonReport report, Write(console, sink));
    ETUDE_RETURN_IF_ERROR(file.Commit());
    Report(console, report);
    return ExitCode::kOk;
  }

 private:
  Result<ByteSource> Open(const RunContext& context) const {
    const auto rank = JobRankOfPath(input_);
    if (!rank) return ByteSource::Open(input_, context.limits);
    ETUDE_ASSIGN_OR_RETURN(std::string bytes, ReadJobRankBytes(*rank, context));
    return ByteSource::FromMemory(input_, std::move(bytes), context.limits);
  }

  Result<ChakraJsonReport> Write(const Console& console, const ByteSink& sink) const {
    const RunContext& context = console.context();
    ETUDE_ASSIGN_OR_RETURN(ByteSource source, Open(context));
    ETUDE_ASSIGN_OR_RETURN(const std::string_view beginning, source.Peek(kDetectBytes));
    ChakraJson json(source.name(), console.strict(), context.limits, sink);
    if (DetectFileKind(beginning) == FileKind::kChakra) {
      while (true) {
        ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
        if (chunk.empty()) break;
        ETUDE_RETURN_IF_ERROR(json.Push(chunk));
        context.Progress("read " + source.name(), source.bytes_in(), source.size_in().value_or(0));
      }
      return json.Finish(source.cut());
    }
    ETUDE_ASSIGN_OR_RETURN(const Trace trace,
                           ReadTrace(source, {.strict = console.strict()}, context));
    const auto chakra =
        ToChakra(trace, {.break_cycles = !console.strict(), .limits = context.limits});
    if (!chakra) {
      return MakeError(chakra.error().code, source.name() + ": " + chakra.error().message);
    }
    ETUDE_ASSIGN_OR_RETURN(
        const ChakraWriteReport written,
        WriteChakra(chakra->trace, {}, [&](std::string_view bytes) { return json.Push(bytes); }));
    static_cast<void>(written);
    return json.Finish(/*cut=*/false);
  }

  void Report(const Console& console, const ChakraJsonReport& report) const {
    if (report.malformed != 0) {
      console.context().Warn(
          fmt::format("{}: skipped {}", input_,
                      FormatCount(report.malformed, "message that is not a Chakra node",
                                  "messages that are not Chakra nodes")));
    }
    if (report.unknown_fields != 0) {
      console.context().Warn(fmt::format("{}: skipped {} unknown in Chakra", input_,
                                         FormatCount(report.unknown_fields, "field")));
    }
    if (report.no_metadata) {
      console.context().Warn(
          input_ + ":byte 0: found a Node, expected GlobalMetadata; \"metadata\" is empty");
    }
    if (report.misplaced != 0) {
      console.context().Warn(
          fmt::format("{}: skipped {}", input_,
                      FormatCount(report.misplaced, "GlobalMetadata that is not the first message",
                                  "GlobalMetadata that are not the first message")));
    }
    if (report.cut) console.context().Warn(input_ + ": the file ends early");
    if (output_ == "-") return;
    console.Print(fmt::format("wrote {}: {}, {}\n", output_, FormatCount(report.nodes, "node"),
                              WrittenSize(output_, report.bytes)));
  }

  std::string input_;
  std::string output_ = "-";
  std::string compat_;
};

}  // namespace

std::unique_ptr<Command> MakeJsonizeCommand() { return std::make_unique<JsonizeCommand>(); }

}  // namespace etude
