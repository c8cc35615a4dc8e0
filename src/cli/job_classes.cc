#include "src/cli/job_classes.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/formats/job_folder.h"
#include "src/report/format.h"
#include "src/report/json_output.h"
#include "src/synth/encode_job.h"

namespace etude {
namespace {

std::string MeshText(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", axis.name,
                        FormatCount(static_cast<uint64_t>(axis.size)));
  }
  return text.empty() ? "one rank" : text;
}

}  // namespace

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
  return fmt::format("{} ranks in {} {}", FormatCount(counts.ranks), FormatCount(counts.classes),
                     counts.classes == 1 ? "class" : "classes");
}

std::string NodesText(const JobCounts& counts) {
  return fmt::format("{} of {} nodes", FormatCount(counts.nodes_kept), FormatCount(counts.nodes));
}

Result<ExitCode> WriteJobClasses(const JobClassesRequest& request, const Console& console) {
  if (request.output.empty() || request.output == "-") {
    return MakeError(ErrorCode::kUsage, "convert: --to classes needs -o FOLDER for its files");
  }
  std::set<std::string> folders;
  for (const RankInput& input : request.inputs) {
    const std::optional<JobRankPath> rank = JobRankOfPath(input.path);
    if (!rank || !folders.insert(rank->folder).second) continue;
    ETUDE_RETURN_IF_ERROR(ReadJobFolder(rank->folder, console.context()));
  }
  ETUDE_ASSIGN_OR_RETURN(const std::vector<Trace> traces,
                         ForEachRank<Trace>(request.inputs.size(), request.jobs, console.context(),
                                            [&](size_t i, const RunContext& context) {
                                              return ReadRank(request.inputs[i],
                                                              {.strict = console.strict()},
                                                              context);
                                            }));
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto rank = request.inputs[i].rank ? request.inputs[i].rank : traces[i].info().rank;
    if (!rank && traces.size() > 1) {
      return BadInput(request.inputs[i].path +
                      ": one of several traces, and its rank cannot be told");
    }
    ranks.push_back({.rank = rank.value_or(0), .trace = &traces[i]});
  }
  ETUDE_ASSIGN_OR_RETURN(const Job job, EncodeJob(ranks, {.limits = console.context().limits}));
  ETUDE_RETURN_IF_ERROR(WriteJobFolder(job, request.output, console.context()));
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
  console.Print(fmt::format("wrote {}: {} on a mesh of {}, {} communications, {}\n", request.output,
                            ClassesText(counts), MeshText(job.mesh),
                            FormatCount(counts.communications), NodesText(counts)));
  return ExitCode::kOk;
}

}  // namespace etude
