#include "src/cli/app/commands.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/analysis/view/timeline_counters.h"
#include "src/base/each_rank.h"
#include "src/base/text/format_count.h"
#include "src/cli/trace/job_clocks.h"
#include "src/cli/trace/selection_options.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/formats/timeline/perfetto_writer.h"
#include "src/jobs/file_endings.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/run/activity.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

std::string ToText(const std::string& path, const TimelineReport& report) {
  std::string text =
      fmt::format("wrote {}: {}, {}, {}, {}\n", path, FormatCount(report.slices, "slice"),
                  FormatCount(report.flows, "arrow"),
                  FormatCount(report.counters, "counter value", "counter values"),
                  WrittenSize(path, report.bytes));
  const auto line = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("  {}: {}\n", what, FormatCount(count));
  };
  line(report.untimed, "nodes without a start time, left out");
  line(report.split_tracks, "extra tracks for slices that overlap without nesting");
  line(report.crowded,
       "nodes left out because too many overlap; select less with --time or --stream");
  line(report.backward, "dependencies not drawn because they point backward in time");
  return text;
}

Json ToJson(const std::string& path, const TimelineReport& report) {
  return {{"format", "etude-timeline"},
          {"version", 1},
          {"path", path},
          {"slices", report.slices},
          {"arrows", report.flows},
          {"counter_values", report.counters},
          {"bytes", report.bytes},
          {"untimed", report.untimed},
          {"split_tracks", report.split_tracks},
          {"crowded", report.crowded},
          {"backward", report.backward}};
}

class TimelineCommand : public Command {
 public:
  std::string_view name() const override { return "timeline"; }
  std::string_view summary() const override {
    return "write traces as a timeline for Perfetto and chrome://tracing";
  }

  void Declare(Options& options) override {
    options.Positionals("input", &inputs_, "traces in any format, capture folders, or -");
    options.Value("-o,--output", &output_, "FILE",
                  "output file: .json for Chrome's format, .pftrace for Perfetto's");
    options.Required("--output");
    options.Choice("--to", &to_, {"chrome", "perfetto"},
                   "output format (default: from the file name)");
    what_.Declare(options);
    options.Choice("--clocks", &clocks_, {"match", "keep"}, kClocksHelp);
    options.Flag("--no-counters", &no_counters_, "write slices and arrows only");
    options.Flag("--json", &json_, "print a summary of the output as JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    ETUDE_ASSIGN_OR_RETURN(const std::string format, Format());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                           what_.FindInputs(inputs_, console.context()));
    for (const RankInput& input : inputs) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input.path, input.device}));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Read> traces,
                           ForEachRank<Read>(inputs.size(), 0, console.context(),
                                             [&](size_t i, const RunContext& context) {
                                               return ReadOne(inputs[i], console.strict(), context);
                                             }));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<TimelinePart> parts, MakeParts(inputs, traces));
    if (clocks_ == "keep") WarnIfApart(parts, console.context());
    ETUDE_ASSIGN_OR_RETURN(const TimelineReport report, Write(parts, format == "perfetto"));
    if (report.slices == 0) {
      return BadInput(inputs.front().path +
                      ": found no node with a start time, expected a linked trace, a profile or a "
                      "simulated job (etude simulate -o)");
    }
    if (output_ == "-") return ExitCode::kOk;
    console.Print(json_ ? JsonText(ToJson(output_, report)) : ToText(output_, report));
    return ExitCode::kOk;
  }

 private:
  struct Read {
    Trace trace;
    CommLog log;  // of the whole trace
  };

  Result<Read> ReadOne(const RankInput& input, bool strict, const RunContext& context) const {
    ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadRank(input, {.strict = strict}, context));
    const int64_t rank = input.rank.value_or(trace.info().rank.value_or(0));
    CommLog log = ReadCommLog(trace, rank);
    ETUDE_ASSIGN_OR_RETURN(trace, what_.Select(std::move(trace), input.path, context.limits));
    return Read{.trace = std::move(trace), .log = std::move(log)};
  }

  Result<std::vector<TimelinePart>> MakeParts(const std::vector<RankInput>& inputs,
                                              const std::vector<Read>& traces) const {
    std::vector<CommLog> logs;
    std::set<int64_t> ranks;
    bool distinct = true;
    for (const Read& read : traces) {
      logs.push_back(read.log);
      distinct = ranks.insert(read.log.rank).second && distinct;
    }
    if (clocks_ != "keep" && !distinct) {
      return MakeError(ErrorCode::kUsage,
                       "timeline: several traces of one rank have no common clock; --clocks keep "
                       "shows their times unchanged");
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Nanos> offsets, ClockOffsets(logs, clocks_));
    std::vector<TimelinePart> parts;
    for (size_t i = 0; i < traces.size(); ++i) {
      const bool known = inputs[i].rank || traces[i].trace.info().rank;
      TimelinePart part{
          .trace = &traces[i].trace,
          .name = known && distinct ? fmt::format("rank {}", logs[i].rank) : inputs[i].path,
          .pid = distinct ? logs[i].rank : static_cast<int64_t>(i),
          .offset = offsets[i],
          .counters = {}};
      if (!no_counters_) part.counters = TimelineCounters(*part.trace);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // Warns if a part begins after another has ended: clocks with different origins show them far
  // apart.
  static void WarnIfApart(const std::vector<TimelinePart>& parts, const RunContext& context) {
    std::optional<std::pair<Nanos, const TimelinePart*>> last_begin;
    std::optional<std::pair<Nanos, const TimelinePart*>> first_end;
    for (const TimelinePart& part : parts) {
      const auto span = SpanOf(*part.trace);
      if (!span) continue;
      const Nanos begin = span->begin - part.offset;
      const Nanos end = span->end - part.offset;
      if (!last_begin || begin > last_begin->first) last_begin = {begin, &part};
      if (!first_end || end < first_end->first) first_end = {end, &part};
    }
    if (!last_begin || last_begin->first <= first_end->first) return;
    context.Warn(fmt::format(
        "{} begins {} after the end of {}: check that they were recorded with the same clock",
        last_begin->second->name, FormatTime(last_begin->first - first_end->first),
        first_end->second->name));
  }

  Result<std::string> Format() const {
    if (!to_.empty()) return to_;
    const std::string ending = FormatEnding(output_);
    if (ending == ".json" || output_ == "-") return "chrome";
    if (ending == ".pftrace" || ending == ".perfetto-trace") return "perfetto";
    return MakeError(
        ErrorCode::kUsage,
        "timeline: " + output_ + ": expected a name that ends in .json or .pftrace, or --to");
  }

  Result<TimelineReport> Write(const std::vector<TimelinePart>& parts, bool perfetto) const {
    ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(output_));
    const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
    ETUDE_ASSIGN_OR_RETURN(const TimelineReport report, perfetto
                                                            ? WritePerfettoTimeline(parts, sink)
                                                            : WriteChromeTimeline(parts, sink));
    if (report.slices != 0) ETUDE_RETURN_IF_ERROR(file.Commit());
    return report;
  }

  std::vector<std::string> inputs_;
  std::string output_;
  std::string to_;
  SelectionOptions what_;
  std::string clocks_ = "match";
  bool no_counters_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTimelineCommand() { return std::make_unique<TimelineCommand>(); }

}  // namespace etude
