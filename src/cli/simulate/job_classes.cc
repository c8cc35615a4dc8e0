#include "src/cli/simulate/job_classes.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/cli/app/output_files.h"
#include "src/cli/app/rank_list.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/job_folder.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/synth/job/encode_job.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

std::string MeshText(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", axis.name,
                        FormatCount(static_cast<uint64_t>(axis.size)));
  }
  return text.empty() ? "one rank" : text;
}

struct WrittenRank {
  std::string path;
  uint64_t bytes = 0;
};

}  // namespace

Result<RankTraces> ReadRankTraces(const std::vector<RankInput>& inputs, const std::string& groups,
                                  int64_t jobs, const ReadOptions& options,
                                  const RunContext& context) {
  RankTraces read;
  std::set<std::string> folders;
  std::vector<std::string> paths;
  for (const RankInput& input : inputs) {
    paths.push_back(input.path);
    const std::optional<JobRankPath> rank = JobRankOfPath(input.path);
    if (!rank || !folders.insert(rank->folder).second) continue;
    ETUDE_ASSIGN_OR_RETURN(const Job job, ReadJobFolder(rank->folder, context));
    read.groups = UnlistedGroups(job);
  }
  const std::string file = groups.empty() ? GroupsBeside(paths) : groups;
  if (!file.empty()) {
    ETUDE_ASSIGN_OR_RETURN(read.groups, ReadGroupRanks(file, context));
  }
  ETUDE_ASSIGN_OR_RETURN(
      read.traces,
      ForEachRank<Trace>(inputs.size(), jobs, context, [&](size_t i, const RunContext& of_rank) {
        return ReadRank(inputs[i], options, of_rank);
      }));
  std::vector<CommLog> logs;
  GroupNames names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto rank = inputs[i].rank ? inputs[i].rank : read.traces[i].info().rank;
    if (!rank && inputs.size() > 1) {
      return BadInput(
          inputs[i].path +
          ": found no rank in its name or content, expected one in each of several traces");
    }
    read.ranks.push_back(rank.value_or(0));
    logs.push_back(ReadCommLog(read.traces[i], read.ranks.back()));
    names.Add(logs.back());
  }
  names.Apply(file, read.groups, context);
  for (const CommLog& log : logs) {
    if (!file.empty()) ETUDE_RETURN_IF_ERROR(CheckGroupRanks(file, read.groups, log));
  }
  return read;
}

JobCounts CountsOf(const Job& job) {
  JobCounts counts{.ranks = static_cast<uint64_t>(job.rank_count()),
                   .classes = job.classes.size(),
                   .communications = job.events.size()};
  for (const RankClass& one : job.classes) {
    counts.nodes_kept += one.program.node_count();
    counts.nodes += one.program.node_count() * static_cast<uint64_t>(one.ranks.size());
  }
  return counts;
}

std::string ClassesText(const JobCounts& counts) {
  return fmt::format("{} in {}", FormatCount(counts.ranks, "rank"),
                     FormatCount(counts.classes, "class", "classes"));
}

std::string NodesText(const JobCounts& counts) {
  return fmt::format("{} of {}", FormatCount(counts.nodes_kept), FormatCount(counts.nodes, "node"));
}

namespace {

// The job in classes of which `inputs` are all ranks, if any.
Result<std::optional<Job>> WholeJobOf(const std::vector<RankInput>& inputs,
                                      const RunContext& context) {
  std::set<std::string> folders;
  for (const RankInput& input : inputs) {
    const std::optional<JobRankPath> rank = JobRankOfPath(input.path);
    if (!rank) return std::nullopt;
    folders.insert(rank->folder);
  }
  if (folders.size() != 1) return std::nullopt;
  ETUDE_ASSIGN_OR_RETURN(Job job, ReadJobFolder(*folders.begin(), context));
  if (job.rank_count() != static_cast<int64_t>(inputs.size())) return std::nullopt;
  return job;
}

// A folder of classes all of whose ranks are asked for stays the job that it is; anything else
// becomes one.
Result<Job> JobOf(const JobClassesRequest& request, const Console& console) {
  for (const RankInput& input : request.inputs) {
    const std::optional<JobRankPath> rank = JobRankOfPath(input.path);
    std::error_code ignored;
    if (rank && std::filesystem::equivalent(rank->folder, request.output, ignored)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("convert: {}: found the job itself, expected another folder",
                                   request.output));
    }
  }
  if (request.groups.empty()) {
    ETUDE_ASSIGN_OR_RETURN(std::optional<Job> whole, WholeJobOf(request.inputs, console.context()));
    if (whole) return *std::move(whole);
  }
  ETUDE_ASSIGN_OR_RETURN(RankTraces read,
                         ReadRankTraces(request.inputs, request.groups, request.jobs,
                                        {.strict = console.strict()}, console.context()));
  // Classes hold Chakra traces: what others say by nesting and times becomes dependencies.
  ETUDE_ASSIGN_OR_RETURN(
      read.traces,
      ForEachRank<Trace>(
          read.traces.size(), request.jobs, console.context(),
          [&](size_t i, const RunContext& of_rank) -> Result<Trace> {
            Trace& trace = read.traces[i];
            if (trace.info().format == TraceFormat::kChakra) return std::move(trace);
            ETUDE_ASSIGN_OR_RETURN(
                ToChakraResult made,
                ToChakraOf(request.inputs[i].path, trace,
                           {.break_cycles = !console.strict(), .limits = of_rank.limits}, of_rank));
            trace = Trace();
            return std::move(made.trace);
          }));
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < read.traces.size(); ++i) {
    ranks.push_back({.rank = read.ranks[i], .trace = &read.traces[i]});
  }
  return EncodeJob(ranks, {.groups = std::move(read.groups), .limits = console.context().limits});
}

}  // namespace

Result<ExitCode> WriteJobClasses(const JobClassesRequest& request, const Console& console) {
  if (request.output.empty() || request.output == "-") {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("convert: --to {} needs -o FOLDER for its files",
                                 request.files == ClassFiles::kPacked ? "packed" : "classes"));
  }
  ETUDE_RETURN_IF_ERROR(CheckNoTraces(request.output, console.context()));
  ETUDE_ASSIGN_OR_RETURN(const Job job, JobOf(request, console));
  ETUDE_RETURN_IF_ERROR(WriteJobFolder(job, request.output, console.context(), request.files));
  const JobCounts counts = CountsOf(job);
  if (request.json) {
    nlohmann::ordered_json mesh = nlohmann::ordered_json::array();
    for (const MeshAxis& axis : job.mesh.axes()) {
      mesh.push_back({{"name", axis.name}, {"size", axis.size}});
    }
    const nlohmann::ordered_json json = {{"format", "etude-convert-classes"},
                                         {"version", 1},
                                         {"output", request.output},
                                         {"ranks", counts.ranks},
                                         {"classes", counts.classes},
                                         {"mesh", mesh},
                                         {"communications", counts.communications},
                                         {"nodes", counts.nodes},
                                         {"nodes_kept", counts.nodes_kept}};
    console.Print(JsonText(json));
    return ExitCode::kOk;
  }
  console.Print(fmt::format(
      "wrote {}: {} on a mesh of {}, {}, {}\n", request.output, ClassesText(counts),
      MeshText(job.mesh), FormatCount(counts.communications, "communication"), NodesText(counts)));
  return ExitCode::kOk;
}

Result<ExitCode> WriteJobRanks(const JobRanksRequest& request, const Console& console) {
  const RunContext& context = console.context();
  std::error_code ignored;
  if (request.output.empty() || request.output == "-" ||
      std::filesystem::equivalent(request.output, request.folder, ignored)) {
    return MakeError(ErrorCode::kUsage,
                     "convert: a folder of classes needs -o FOLDER, another one, for its ranks");
  }
  // The whole job must fit together, not only what a rank sees of it.
  ETUDE_ASSIGN_OR_RETURN(const Job job, ReadJobFolder(request.folder, context));
  ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, RanksOfJobFolder(request.folder, context));
  ETUDE_ASSIGN_OR_RETURN(ranks, ChooseFromRanks(request.ranks, ranks, request.folder));
  if (ranks.size() > static_cast<size_t>(kMostRankFiles)) {
    return BadInput(
        fmt::format("{}: found {} ranks, expected up to {}, a file each; --ranks chooses some",
                    request.folder, FormatCount(ranks.size()), FormatCount(kMostRankFiles)));
  }
  const GroupRanks groups = UnlistedGroups(job);
  const std::string prefix = (std::filesystem::path(request.output) / "chakra").string();
  ETUDE_RETURN_IF_ERROR(CheckNoOtherJob(prefix, ranks.back() + 1, !groups.empty()));
  ETUDE_RETURN_IF_ERROR(MakeFolder(request.output));
  ETUDE_ASSIGN_OR_RETURN(
      const std::vector<WrittenRank> files,
      ForEachRank<WrittenRank>(ranks.size(), request.jobs, context,
                               [&](size_t i, const RunContext& own) -> Result<WrittenRank> {
                                 ETUDE_ASSIGN_OR_RETURN(
                                     const std::string bytes,
                                     ReadJobRankBytes({.folder = request.folder, .rank = ranks[i]},
                                                      own));
                                 WrittenRank file{.path = fmt::format("{}.{}.et", prefix, ranks[i]),
                                                  .bytes = bytes.size()};
                                 ETUDE_RETURN_IF_ERROR(ReplaceFile(file.path, bytes));
                                 return file;
                               }));
  if (!groups.empty()) {
    ETUDE_RETURN_IF_ERROR(ReplaceFile(GroupsFileName(prefix), GroupRanksText(groups)));
  }
  uint64_t bytes = 0;
  for (const WrittenRank& file : files) bytes += file.bytes;
  if (request.json) {
    nlohmann::ordered_json json = {
        {"format", "etude-convert-ranks"}, {"version", 1}, {"output", request.output}};
    json["ranks"] = files.size();
    json["bytes"] = bytes;
    json["groups"] =
        groups.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(GroupsFileName(prefix));
    console.Print(JsonText(json));
    return ExitCode::kOk;
  }
  std::string text = "wrote " + files.front().path;
  if (files.size() > 1) text += " … " + files.back().path;
  text += fmt::format(": {} of {}, {}\n", FormatCount(files.size()),
                      FormatCount(static_cast<uint64_t>(job.rank_count()), "rank"),
                      FormatBytes(Bytes{static_cast<int64_t>(bytes)}));
  if (!groups.empty()) {
    text +=
        fmt::format("wrote {}: {}\n", GroupsFileName(prefix), FormatCount(groups.size(), "group"));
  }
  console.Print(text);
  return ExitCode::kOk;
}

}  // namespace etude
