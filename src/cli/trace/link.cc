#include "src/cli/app/commands.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/each_rank.h"
#include "src/cli/compat/compat.h"
#include "src/cli/inspect/rank_results.h"
#include "src/compat/chakra/chakra_tools.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/output_files.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/run/rank_run.h"
#include "src/transform/read_job.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

// Traces of one process, and the output path.
struct LinkJob {
  int64_t rank = 0;
  std::string host;
  std::string device;
  std::string output;

  std::string name() const { return host + " + " + device; }
};

Json AccountJson(const LinkJob& job, const LinkResult& result, const WrittenTrace& written) {
  Json json;
  json["host"] = job.host;
  json["device"] = job.device;
  json["rank"] = OrNull(result.trace.info().rank);
  json.update(LinkAccount(result));
  json["output"] = ToJson(written);
  return json;
}

std::string AccountText(const LinkJob& job, const LinkResult& result) {
  const uint64_t linkable = result.host_linkable();
  std::string text = job.name() + "\n";
  text +=
      fmt::format("  {} of {} host nodes have times ({})", FormatCount(result.host_matched()),
                  FormatCount(linkable), FormatShare(LinkedShare(result.host_matched(), linkable)));
  if (result.device_nodes() != 0) {
    text += fmt::format(", {} of {} device operations have a host operator ({})",
                        FormatCount(result.device_linked()), FormatCount(result.device_nodes()),
                        FormatShare(LinkedShare(result.device_linked(), result.device_nodes())));
  }
  text += "\n";
  TextTable table({TextTable::Align::kLeft, TextTable::Align::kRight, TextTable::Align::kLeft});
  for (size_t i = 0; i < kHostLinkCount; ++i) {
    const HostLinkInfo& info = Info(static_cast<HostLink>(i));
    if (result.host[i] == 0) continue;
    table.Row({"host nodes", FormatCount(result.host[i]), std::string(info.help)});
  }
  for (size_t i = 0; i < kEventLinkCount; ++i) {
    const EventLinkInfo& info = Info(static_cast<EventLink>(i));
    if (result.events[i] == 0) continue;
    table.Row({"events", FormatCount(result.events[i]), std::string(info.help)});
  }
  for (size_t i = 0; i < kSyncKindCount; ++i) {
    if (result.syncs[i] == 0) continue;
    table.Row({"syncs", FormatCount(result.syncs[i]), std::string(Help(static_cast<SyncKind>(i)))});
  }
  text += table.Text();
  if (result.sync_edges + result.thread_edges != 0) {
    text += fmt::format("  dependencies added: {} by synchronization, {} between threads\n",
                        FormatCount(result.sync_edges), FormatCount(result.thread_edges));
  }
  if (result.contradictions != 0) {
    text += fmt::format(
        "  {} left out\n",
        FormatCount(result.contradictions, "such dependency contradicts the others and was",
                    "such dependencies contradict the others and were"));
  }
  if (result.adopted != 0) {
    text += fmt::format("  {} attached to their thread\n",
                        FormatCount(result.adopted, "host node without a caller was",
                                    "host nodes without a caller were"));
  }
  if (result.moved != 0) {
    text += fmt::format("  {} attached to another caller than in the host trace\n",
                        FormatCount(result.moved, "host node was", "host nodes were"));
  }
  if (result.ambiguous != 0) {
    text += fmt::format("  {} several candidates; the first was taken\n",
                        FormatCount(result.ambiguous, "link had", "links had"));
  }
  if (result.overhanging != 0) {
    text +=
        fmt::format("  {} beyond the end of their caller; only the part inside was subtracted\n",
                    FormatCount(result.overhanging, "node runs", "nodes run"));
  }
  if (result.renumbered) text += "  host ids were not unique: all nodes have new ids\n";
  return text;
}

class LinkCommand : public Command {
 public:
  std::string_view name() const override { return "link"; }
  std::string_view summary() const override {
    return "join host and device traces: operators, times and kernels in one trace";
  }

  void Declare(Options& options) override {
    options.Positional("host", &host_, "PyTorch execution trace, or a capture folder");
    options.Positional("device", &device_, "Kineto trace of the same run", /*required=*/false);
    options.Output("-o,--output", &output_, "PATH",
                   "file to write; for a folder: output folder (default: the input folder)",
                   {".et", ".json"});
    options.Choice(
        "--to", &to_, {"linked", "et"},
        "output format: linked JSON or Chakra (default: from the file name, else linked)");
    options.Flag("--drop-orphans", &drop_orphans_,
                 "drop device operations without a host operator");
    options.Jobs(&jobs_, "ranks of a folder");
    options.Flag("--json", &json_, "print a summary of the output as JSON");
    options.Choice("--compat", &compat_, {kCompatChakra},
                   "write output byte-identical to this version of Chakra");
  }

  Result<ExitCode> Run(const Console& console) override {
    // Empty if the traces already contain times.
    ETUDE_ASSIGN_OR_RETURN(const std::vector<LinkJob> jobs, FindJobs(console));
    for (const LinkJob& job : jobs) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(job.output, {job.host, job.device}));
    }
    if (!compat_.empty()) {
      for (const LinkJob& job : jobs) {
        compat::LinkRequest request{.host = job.host, .device = job.device, .linked = {}, .et = {}};
        const bool to_et = FormatOf(to_, job.output) == OutputFormat::kChakra;
        (to_et ? request.et : request.linked) = job.output;
        ETUDE_RETURN_IF_ERROR(compat::TraceLink(request, console.context()));
      }
      return ExitCode::kOk;
    }
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankResult> done,
                           ForEachRank<RankResult>(jobs.size(), jobs_, console.context(),
                                                   [&](size_t i, const RunContext& context) {
                                                     return LinkAndWrite(jobs[i], console.strict(),
                                                                         context);
                                                   }));
    if (!jobs.empty() && jobs.front().output == "-") return ExitCode::kOk;
    PrintRankResults(std::move(done), json_, "etude-link", "links", console);
    return ExitCode::kOk;
  }

 private:
  Result<std::vector<LinkJob>> FindJobs(const Console& console) const {
    if (device_.empty()) return FindJobsOfFolder(console);
    if (output_.empty()) {
      return MakeError(ErrorCode::kUsage, "link: missing -o FILE for the linked trace");
    }
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    return std::vector<LinkJob>{{.host = host_, .device = device_, .output = output_}};
  }

  Result<std::vector<LinkJob>> FindJobsOfFolder(const Console& console) const {
    if (!IsFolder(host_)) {
      const tl::unexpected<Error> no_folder = NoFolder(host_);
      if (host_ != "-" && no_folder.value().code == ErrorCode::kIo) return no_folder;
      return MakeError(ErrorCode::kUsage,
                       "link: found one trace, expected a host and a device trace, or a folder");
    }
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(host_, console.context()));
    const std::string target = output_.empty() ? folder.path : output_;
    const OutputFormat format = to_ == "et" ? OutputFormat::kChakra : OutputFormat::kLinked;
    std::vector<LinkJob> jobs;
    std::string timed;  // a native capture without a device profile
    for (const CaptureRank& rank : folder.ranks) {
      const std::string& host = rank.host.empty() ? rank.native : rank.host;
      if (rank.host.empty() && rank.device.empty() && !rank.native.empty()) {
        timed = rank.native;
        continue;
      }
      if (host.empty() || rank.device.empty()) {
        console.context().Warn(fmt::format("{}: rank {} has no {} trace; not linked", folder.path,
                                           rank.number(), host.empty() ? "host" : "device"));
        continue;
      }
      jobs.push_back({.rank = rank.number(),
                      .host = host,
                      .device = rank.device,
                      .output = target + "/" + RankFileName(format, rank.number(), host)});
    }
    if (!jobs.empty() && !timed.empty()) {
      console.context().Warn(timed + ": found no device profile next to it; not linked");
    }
    if (jobs.empty() && !timed.empty()) {
      const std::string why = timed +
                              ": found a native capture, which already contains times; all "
                              "commands read it without linking";
      if (!output_.empty() || !to_.empty()) return BadInput(why);
      console.Say("etude: " + why);
      return jobs;
    }
    if (jobs.empty()) {
      return BadInput(folder.path +
                      ": found no rank with both a host and a device trace, expected at least one");
    }
    ETUDE_RETURN_IF_ERROR(MakeFolder(target));
    return jobs;
  }

  Result<RankResult> LinkAndWrite(const LinkJob& job, bool strict,
                                  const RunContext& context) const {
    ETUDE_ASSIGN_OR_RETURN(const LinkResult result, LinkTraces(job, strict, context));
    ETUDE_ASSIGN_OR_RETURN(
        const WrittenTrace written,
        WriteTraceOf(job.name(), result.trace,
                     {.path = job.output,
                      .format = FormatOf(to_, job.output),
                      .existing = job.output == output_ ? Existing::kFollow : Existing::kReplace},
                     context));
    RankResult linked;
    linked.rank = result.trace.info().rank.value_or(job.rank);
    const RecordedRun run(result.trace);
    linked.run = MakeRankRun(run, linked.rank);
    linked.health = JudgeTrace(run, linked.run);
    linked.json = AccountJson(job, result, written);
    linked.json["health"] = ToJson(linked.health);
    linked.text = AccountText(job, result) + ToText(written) +
                  (linked.health.verdict() == Verdict::kGood ? ToText(linked.health)
                                                             : ShortText(linked.health));
    return linked;
  }

  Result<LinkResult> LinkTraces(const LinkJob& job, bool strict, const RunContext& context) const {
    const ReadOptions options{.strict = strict};
    ETUDE_ASSIGN_OR_RETURN(const bool native, IsNative(job.host, context));
    if (native) {
      return LinkNative(job.host, job.device, options,
                        {.keep_orphans = !drop_orphans_, .limits = context.limits}, context);
    }
    ETUDE_ASSIGN_OR_RETURN(const Trace host, ReadTrace(job.host, options, context));
    ETUDE_ASSIGN_OR_RETURN(const Trace device, ReadTrace(job.device, options, context));
    return LinkRun({&host, job.host}, {&device, job.device},
                   {.keep_orphans = !drop_orphans_, .limits = context.limits});
  }

  std::string host_;
  std::string device_;
  std::string output_;
  std::string to_;
  std::string compat_;
  int64_t jobs_ = 0;
  bool drop_orphans_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLinkCommand() { return std::make_unique<LinkCommand>(); }

}  // namespace etude
