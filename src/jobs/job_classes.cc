#include "src/jobs/job_classes.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/synth/job/encode_job.h"
#include "src/transform/write_trace.h"

namespace etude {
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

// Returns the job in classes whose ranks are exactly `inputs`, if any.
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

}  // namespace

Result<Job> ReadJob(const JobClassesRequest& request, bool strict, const RunContext& context) {
  for (const RankInput& input : request.inputs) {
    const std::optional<JobRankPath> rank = JobRankOfPath(input.path);
    std::error_code ignored;
    if (rank && std::filesystem::equivalent(rank->folder, request.output, ignored)) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("convert: {}: found the input folder, expected another folder",
                                   request.output));
    }
  }
  if (request.groups.empty()) {
    ETUDE_ASSIGN_OR_RETURN(std::optional<Job> whole, WholeJobOf(request.inputs, context));
    if (whole) return *std::move(whole);
  }
  ETUDE_ASSIGN_OR_RETURN(
      RankTraces read,
      ReadRankTraces(request.inputs, request.groups, request.jobs, {.strict = strict}, context));
  // Classes contain Chakra traces, so order from nesting and times becomes dependencies.
  ETUDE_ASSIGN_OR_RETURN(
      read.traces,
      ForEachRank<Trace>(read.traces.size(), request.jobs, context,
                         [&](size_t i, const RunContext& of_rank) -> Result<Trace> {
                           Trace& trace = read.traces[i];
                           if (trace.traits().states_order) return std::move(trace);
                           ETUDE_ASSIGN_OR_RETURN(
                               ToChakraResult made,
                               ToChakraOf(request.inputs[i].path, trace,
                                          {.break_cycles = !strict, .limits = of_rank.limits},
                                          of_rank));
                           trace = Trace();
                           return std::move(made.trace);
                         }));
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < read.traces.size(); ++i) {
    ranks.push_back({.rank = read.ranks[i], .trace = &read.traces[i]});
  }
  return EncodeJob(ranks, {.groups = std::move(read.groups), .limits = context.limits});
}

}  // namespace etude
