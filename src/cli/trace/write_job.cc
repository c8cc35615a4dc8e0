#include "src/cli/trace/write_job.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/output_files.h"
#include "src/jobs/rank_list.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

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

Result<ExitCode> WriteJobClasses(const JobClassesRequest& request, bool json_output,
                                 const Console& console) {
  if (request.output.empty() || request.output == "-") {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("convert: --to {} requires -o FOLDER",
                                 request.files == ClassFiles::kPacked ? "packed" : "classes"));
  }
  ETUDE_RETURN_IF_ERROR(CheckNoTraces(request.output, console.context()));
  ETUDE_ASSIGN_OR_RETURN(const Job job, ReadJob(request, console.strict(), console.context()));
  ETUDE_RETURN_IF_ERROR(WriteJobFolder(job, request.output, console.context(), request.files));
  const JobCounts counts = CountsOf(job);
  if (json_output) {
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

Result<ExitCode> WriteJobRanks(const JobRanksRequest& request, bool json_output,
                               const Console& console) {
  const RunContext& context = console.context();
  std::error_code ignored;
  if (request.output.empty() || request.output == "-" ||
      std::filesystem::equivalent(request.output, request.folder, ignored)) {
    return MakeError(
        ErrorCode::kUsage,
        "convert: a folder of classes requires -o FOLDER, other than the input, for its ranks");
  }
  // The whole job must be consistent, not only the part that a rank sees.
  ETUDE_ASSIGN_OR_RETURN(const Job job, ReadJobFolder(request.folder, context));
  ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, RanksOfJobFolder(request.folder, context));
  ETUDE_ASSIGN_OR_RETURN(ranks, ChooseFromRanks(request.ranks, ranks, request.folder));
  if (ranks.size() > static_cast<size_t>(kMostRankFiles)) {
    return BadInput(fmt::format(
        "{}: found {} ranks, expected at most {}, one file each; choose some with --ranks",
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
  if (json_output) {
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
