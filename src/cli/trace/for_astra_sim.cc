#include "src/cli/trace/for_astra_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/each_rank.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/json/json_document.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/job_health.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/run/rank_run.h"
#include "src/transform/astra_sim/astra_notes.h"
#include "src/transform/astra_sim/for_astra_sim.h"
#include "src/transform/to_chakra.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTraceEnding = ".et";

struct AstraTarget {
  std::string folder;
  std::string prefix;  // of the traces, including the folder
};

std::optional<int64_t> RankOfName(const std::string& path) {
  return RankFromName(std::filesystem::path(path).filename().string());
}

// Interprets -o: a folder, or for one trace its output file.
Result<AstraTarget> FindTarget(const AstraSimRequest& request) {
  if (request.output.empty() || request.output == "-") {
    return MakeError(ErrorCode::kUsage,
                     "convert: --for astra-sim requires -o with a folder or PREFIX.RANK.et");
  }
  const std::filesystem::path output(request.output);
  if (!request.output.ends_with(kTraceEnding)) {
    return AstraTarget{.folder = output.string(), .prefix = (output / "chakra").string()};
  }
  const std::filesystem::path stem = output.stem();
  if (request.inputs.size() != 1 || !RankOfName(request.output) || stem.extension().empty()) {
    return MakeError(ErrorCode::kUsage,
                     "convert: " + request.output +
                         ": expected PREFIX.RANK.et, one file per rank as ASTRA-sim reads them");
  }
  const auto folder = output.parent_path();
  return AstraTarget{.folder = folder.empty() ? "." : folder.string(),
                     .prefix = (folder / stem.stem()).string()};
}

// A rank, and the reliability of its trace.
struct RankRead {
  RunnableRank rank;
  Health health;
  RankRun run;
};

Result<RankRead> ReadRank(const AstraSimRequest& request, const AstraSimRequest::Input& input,
                          const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, input.read(context));
  const Limits& limits = context.limits;
  auto made = [&]() -> Result<RunnableRank> {
    ETUDE_ASSIGN_OR_RETURN(
        const ToChakraResult chakra,
        ToChakra(trace, {.break_cycles = request.break_cycles, .limits = limits}));
    return MakeRunnableRank(chakra.trace, {.compute = request.flops ? RunnableCompute::kFlops
                                                                    : RunnableCompute::kDurations,
                                           .limits = limits});
  }();
  if (!made) return MakeError(made.error().code, input.name + ": " + made.error().message);
  if (input.rank) made->rank = input.rank;
  if (!made->rank) made->rank = RankOfName(input.name);
  if (!made->rank) made->rank = RankOfName(request.output);
  if (!made->world_size) made->world_size = request.world_size;
  RankRead read{.rank = *std::move(made), .health = {}, .run = {}};
  const RecordedRun run(trace);
  read.run = MakeRankRun(run, read.rank.rank.value_or(0));
  read.health = JudgeTrace(run, read.run);
  return read;
}

// Sets the ranks of groups that the trace does not list.
void TakeGroupRanks(const GroupRanks& known, RunnableRank& rank) {
  for (RunnableGroup& group : rank.groups) {
    const auto found = known.find(group.name);
    if (!group.ranks && found != known.end()) group.ranks = found->second;
  }
}

// Does the same for a job stored as classes, which contains all groups.
void TakeGroupRanks(const Job& job, RunnableRank& rank) {
  if (!rank.rank) return;
  for (const GroupKind& kind : job.group_kinds) {
    if (kind.callers_only) continue;
    const auto number = kind.GroupOf(job.mesh, *rank.rank);
    if (!number) continue;
    const std::string name = kind.NameOf(*number);
    for (RunnableGroup& group : rank.groups) {
      if (!group.ranks && group.name == name) group.ranks = kind.RanksOf(job.mesh, *number);
    }
  }
}

std::string TracePath(const AstraTarget& target, int64_t rank) {
  return fmt::format("{}.{}{}", target.prefix, rank, kTraceEnding);
}

std::string ToText(const AstraJob& job) {
  if (!job.world_known) {
    return "the trace lacks the number of ranks of the job; set it with --ranks N\n";
  }
  const std::string ranks =
      fmt::format("a job of {}", FormatCount(static_cast<uint64_t>(job.world_size), "rank"));
  if (job.world_size == 1) {
    return ranks +
           ": ASTRA-sim's analytical networks require at least two (--ranks, --fill-ranks)\n";
  }
  if (job.missing.empty()) return ranks + ", all with a trace\n";
  return fmt::format("{}, {} without a trace ({}): ASTRA-sim requires a file for each\n", ranks,
                     job.missing.size(), RankListText(job.missing));
}

std::string ToText(const AstraJob& job, const AstraTarget& target, const std::string& groups) {
  std::string text;
  for (const AstraRankReport& rank : job.ranks) {
    text +=
        fmt::format("wrote {}: {} ({}), {}, {}, {} ({})", TracePath(target, rank.rank),
                    FormatCount(rank.compute, "compute node"), FormatTime(rank.compute_time),
                    FormatCount(rank.collectives, "collective"), FormatCount(rank.sends, "send"),
                    FormatCount(rank.recvs, "receive"), FormatBytes(rank.comm_bytes));
    if (rank.copy_of) text += fmt::format(", a copy of rank {}", *rank.copy_of);
    if (rank.host_time.count != 0) {
      text += fmt::format(", without {} of host work", FormatTime(rank.host_time));
    }
    text += "\n";
  }
  text += fmt::format("wrote {}: {}\n", groups, FormatCount(job.groups.size(), "group"));
  for (const RunnableNoteRow& row : kRunnableNotes) {
    const uint64_t count = job.notes[row.note];
    if (count == 0) continue;
    text += fmt::format("  {}{}: {}\n", row.text, AstraReason(row.note), FormatCount(count));
  }
  for (const std::string& message : job.messages) text += "  " + message + "\n";
  text += ToText(job);
  text += fmt::format("  --workload-configuration={} --comm-group-configuration={}\n",
                      target.prefix, groups);
  return text;
}

Json ToJson(const AstraJob& job, const AstraTarget& target, const std::string& groups) {
  Json json = {{"format", "etude-convert-astra-sim"}, {"version", 1}};
  json["prefix"] = target.prefix;
  json["groups"] = groups;
  json["world_size"] = job.world_known ? Json(job.world_size) : Json(nullptr);
  json["missing_ranks"] = job.missing;
  json["ranks"] = Json::array();
  for (const AstraRankReport& rank : job.ranks) {
    Json one = {{"rank", rank.rank},
                {"path", TracePath(target, rank.rank)},
                {"compute_nodes", rank.compute},
                {"collectives", rank.collectives},
                {"sends", rank.sends},
                {"receives", rank.recvs},
                {"compute_ns", rank.compute_time.count},
                {"communication_bytes", rank.comm_bytes.count},
                {"left_out_host_ns", rank.host_time.count}};
    if (rank.copy_of) one["copy_of"] = *rank.copy_of;
    json["ranks"].push_back(std::move(one));
  }
  json["changes"] = Json::object();
  for (const RunnableNoteRow& row : kRunnableNotes) json["changes"][row.key] = job.notes[row.note];
  json["messages"] = job.messages;
  return json;
}

}  // namespace

Result<ExitCode> ConvertForAstraSim(const AstraSimRequest& request, const Console& console) {
  ETUDE_ASSIGN_OR_RETURN(const AstraTarget target, FindTarget(request));
  ETUDE_ASSIGN_OR_RETURN(
      std::vector<RankRead> traces,
      ForEachRank<RankRead>(request.inputs.size(), request.jobs, console.context(),
                            [&](size_t i, const RunContext& context) {
                              return ReadRank(request, request.inputs[i], context);
                            }));
  GroupRanks groups;
  std::vector<std::string> names;
  for (const AstraSimRequest::Input& input : request.inputs) names.push_back(input.name);
  const std::string known_groups = request.groups.empty() ? GroupsBeside(names) : request.groups;
  if (!known_groups.empty()) {
    ETUDE_ASSIGN_OR_RETURN(groups, ReadGroupRanks(known_groups, console.context()));
  }
  std::optional<Job> job_of_classes;
  if (const auto path = JobRankOfPath(request.inputs.front().name)) {
    ETUDE_ASSIGN_OR_RETURN(job_of_classes, ReadJobFolder(path->folder, console.context()));
  }
  std::vector<RunnableRank> ranks;
  JobHealth job_health;
  GroupNames group_names;
  for (const RankRead& trace : traces) group_names.Add(trace.run.log);
  if (!job_of_classes) group_names.Apply(known_groups, groups, console.context());
  for (RankRead& trace : traces) {
    if (trace.rank.rank)
      ETUDE_RETURN_IF_ERROR(CheckGroupRanks(known_groups, groups, trace.run.log));
    job_health.Add(trace.health, std::move(trace.run));
    TakeGroupRanks(groups, trace.rank);
    if (job_of_classes) TakeGroupRanks(*job_of_classes, trace.rank);
    ranks.push_back(std::move(trace.rank));
  }
  const Health health = job_health.Judge();
  ETUDE_ASSIGN_OR_RETURN(RunnableJob runnable,
                         MakeRunnableJob(std::move(ranks), {.fill_ranks = request.fill_ranks,
                                                            .ranks = request.ranks}));
  ETUDE_ASSIGN_OR_RETURN(
      const AstraJob job,
      ForAstraSim(std::move(runnable), {.compute = request.flops ? RunnableCompute::kFlops
                                                                 : RunnableCompute::kDurations}));
  ETUDE_RETURN_IF_ERROR(MakeFolder(target.folder));
  for (size_t i = 0; i < job.traces.size(); ++i) {
    ETUDE_RETURN_IF_ERROR(WriteChakraFile(job.traces[i], TracePath(target, job.ranks[i].rank)));
  }
  const std::string groups_path =
      (std::filesystem::path(target.folder) / "comm_groups.json").string();
  ETUDE_RETURN_IF_ERROR(WriteGroupsFile(job.groups, groups_path));
  if (request.json) {
    Json json = ToJson(job, target, groups_path);
    json["health"] = ToJson(health);
    console.Print(JsonText(json));
  } else {
    console.Print(ToText(job, target, groups_path) + ShortText(health));
  }
  return ExitCode::kOk;
}

}  // namespace etude
