#include "src/cli/app/commands.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/cli/trace/job_clocks.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/output_files.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/transform/edit/merge.h"
#include "src/transform/read_job.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

class MergeCommand : public Command {
 public:
  std::string_view name() const override { return "merge"; }
  std::string_view summary() const override {
    return "merge traces of several ranks or processes into one trace with one clock";
  }

  void Declare(Options& options) override {
    options.Positionals("input", &inputs_, "traces in any format, or capture folders");
    options.Output("-o,--output", &output_, "FILE", "file to write", {".et", ".json"});
    options.Required("--output");
    options.Choice("--to", &to_, {"linked", "et"},
                   "output format: linked JSON or Chakra (default: from the file name)");
    options.Choice("--clocks", &clocks_, {"match", "keep"}, kClocksHelp);
    options.Flag("--json", &json_, "print a summary of the output as JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                           FindRanks(inputs_, console.context()));
    if (inputs.size() < 2) {
      return MakeError(ErrorCode::kUsage, "merge: found one trace, expected at least two");
    }
    for (const RankInput& input : inputs) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input.path, input.device}));
    }
    ETUDE_ASSIGN_OR_RETURN(
        const std::vector<Trace> traces,
        ForEachRank<Trace>(inputs.size(), 0, console.context(),
                           [&](size_t i, const RunContext& context) {
                             return ReadRank(inputs[i], {.strict = console.strict()}, context);
                           }));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<MergeInput> parts, MakeParts(inputs, traces));
    ETUDE_ASSIGN_OR_RETURN(const MergeResult merged, Merge(parts, console.context().limits));
    ETUDE_ASSIGN_OR_RETURN(
        const WrittenTrace written,
        WriteTrace(merged.trace, output_, FormatOf(to_, output_),
                   {.break_cycles = !console.strict(), .limits = console.context().limits}));
    if (output_ != "-") Report(console, parts, merged, written);
    return ExitCode::kOk;
  }

 private:
  Result<std::vector<MergeInput>> MakeParts(const std::vector<RankInput>& inputs,
                                            const std::vector<Trace>& traces) const {
    std::vector<CommLog> logs;
    std::vector<MergeInput> parts;
    std::set<std::string> labels;
    bool by_rank = true;
    for (size_t i = 0; i < traces.size(); ++i) {
      const auto rank = inputs[i].rank ? inputs[i].rank : traces[i].info().rank;
      std::string label = rank ? fmt::format("rank {}", *rank)
                               : std::filesystem::path(inputs[i].path).filename().string();
      if (!labels.insert(label).second) {
        return MakeError(ErrorCode::kUsage, fmt::format("merge: {}: found a second trace of {}",
                                                        inputs[i].path, label));
      }
      by_rank = by_rank && rank;
      logs.push_back(ReadCommLog(traces[i], rank.value_or(static_cast<int64_t>(i))));
      parts.push_back({.trace = &traces[i], .label = std::move(label)});
    }
    if (!by_rank && clocks_ != "keep") {
      return MakeError(ErrorCode::kUsage,
                       "merge: the ranks of some traces are unknown, so their clocks cannot be "
                       "compared; --clocks keep leaves times unchanged");
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Nanos> offsets, ClockOffsets(logs, clocks_));
    for (size_t i = 0; i < parts.size(); ++i) parts[i].offset = offsets[i];
    return parts;
  }

  void Report(const Console& console, const std::vector<MergeInput>& parts,
              const MergeResult& merged, const WrittenTrace& written) const {
    if (json_) {
      Json json = {{"format", "etude-merge"}, {"version", 1}, {"inputs", Json::array()}};
      for (const MergeInput& part : parts) {
        json["inputs"].push_back({{"label", part.label},
                                  {"nodes", part.trace->node_count()},
                                  {"clock_offset_ns", part.offset.count}});
      }
      json["dangling_references"] = merged.dangling;
      json["renamed_groups"] = merged.renamed_groups;
      json["output"] = ToJson(written);
      console.Print(JsonText(json));
      return;
    }
    std::string text;
    for (const MergeInput& part : parts) {
      text += fmt::format("{}: {}", part.label, FormatCount(part.trace->node_count(), "node"));
      if (part.offset.count != 0) {
        const bool is_ahead = part.offset >= Nanos{};
        text += fmt::format(", its clock was {} {}",
                            FormatTime(is_ahead ? part.offset : Nanos{} - part.offset),
                            is_ahead ? "ahead" : "behind");
      }
      text += "\n";
    }
    if (merged.renamed_groups != 0) {
      text += fmt::format(
          "  process groups renamed because they share a name but have other members: {}\n",
          FormatCount(merged.renamed_groups));
    }
    if (merged.dangling != 0) {
      text +=
          fmt::format("  references to missing nodes, dropped: {}\n", FormatCount(merged.dangling));
    }
    console.Print(text + ToText(written));
  }

  std::vector<std::string> inputs_;
  std::string output_;
  std::string to_;
  std::string clocks_ = "match";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace etude
