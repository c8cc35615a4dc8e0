#include "src/jobs/simulated_files.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/atomic_file.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/simulated_job.h"

namespace etude {
namespace {

using Lines = std::vector<std::string>;

std::string PrefixIn(const std::string& folder) {
  return (std::filesystem::path(folder) / "chakra").string();
}

Result<Trace> ReadRankOfPrefix(const std::string& prefix, int64_t rank, bool strict,
                               const RunContext& context) {
  RunContext silent = context;
  silent.warn = {};  // warnings were issued when it was first read
  return ReadTrace(RankFileOf(prefix, rank), {.strict = strict}, silent);
}

std::string RanksLine(const std::string& prefix, int64_t ranks, uint64_t bytes) {
  std::string text = "wrote " + RankFileOf(prefix, 0);
  if (ranks > 1) text += " … " + RankFileOf(prefix, ranks - 1);
  return text + fmt::format(": {}, {}", FormatCount(static_cast<uint64_t>(ranks), "rank"),
                            FormatBytes(Bytes{static_cast<int64_t>(bytes)}));
}

// A folder in another one, which is removed with all that is still in it.
class FolderInMaking {
 public:
  explicit FolderInMaking(const std::string& folder)
      : path_((std::filesystem::path(folder) / ".etude-partial").string()) {}
  ~FolderInMaking() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FolderInMaking(const FolderInMaking&) = delete;
  FolderInMaking& operator=(const FolderInMaking&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes a file for each rank, or none if it is interrupted.
template <typename TraceOf>
Result<Lines> WriteRanks(const std::string& folder, int64_t ranks, const GroupRanks& groups,
                         const RunContext& context, TraceOf trace_of) {
  const std::string prefix = PrefixIn(folder);
  ETUDE_RETURN_IF_ERROR(CheckNoOtherJob(prefix, ranks, !groups.empty()));
  ETUDE_RETURN_IF_ERROR(MakeFolder(folder));
  const FolderInMaking made(folder);
  ETUDE_RETURN_IF_ERROR(MakeFolder(made.path()));
  uint64_t bytes = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (context.stopped()) {
      return MakeError(ErrorCode::kInterrupted, "interrupted: no traces were written to " + folder);
    }
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, trace_of(rank));
    ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report,
                           WriteChakraFile(trace, RankFileOf(PrefixIn(made.path()), rank)));
    bytes += report.bytes;
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::string to = RankFileOf(prefix, rank);
    std::error_code error;
    std::filesystem::rename(RankFileOf(PrefixIn(made.path()), rank), to, error);
    if (error) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: cannot write: {}", to, error.message()));
    }
  }
  Lines lines{RanksLine(prefix, ranks, bytes)};
  if (groups.empty()) return lines;
  ETUDE_RETURN_IF_ERROR(ReplaceFile(GroupsFileName(prefix), GroupRanksText(groups)));
  lines.push_back(
      fmt::format("wrote {}: {}", GroupsFileName(prefix), FormatCount(groups.size(), "group")));
  return lines;
}

}  // namespace

Status SimulatedFilesOptions::Check(const SimJobOptions& job, const RunContext& context) const {
  if (folder.empty()) return {};
  if (folder == "-") {
    return MakeError(ErrorCode::kUsage, "simulate: -o: found '-', expected a folder");
  }
  std::error_code ignored;
  for (const std::string& path : job.paths) {
    const std::filesystem::path beside = std::filesystem::path(path).parent_path();
    if (std::filesystem::equivalent(path, folder, ignored) ||
        (!std::filesystem::is_directory(path, ignored) &&
         std::filesystem::equivalent(beside.empty() ? "." : beside, folder, ignored))) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("simulate: {}: found the input folder, expected another folder", folder));
    }
  }
  if (to != "et") return CheckNoTraces(folder, context);
  return {};
}

Status SimulatedFilesOptions::CheckJob(const SimJob& job) const {
  if (folder.empty()) return {};
  const auto ranks = static_cast<int64_t>(job.workload.ranks.size());
  if (to == "et" && ranks > kMostRankFiles) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("simulate: found {} ranks, expected at most {}, one file each; "
                                 "--to classes writes one file per class",
                                 FormatCount(static_cast<uint64_t>(ranks)),
                                 FormatCount(static_cast<uint64_t>(kMostRankFiles))));
  }
  if (to != "et" && !job.job) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("simulate: --to {} requires a job whose communications match, not PREFIX", to));
  }
  return {};
}

Result<Lines> WriteSimulatedFiles(const SimulatedFilesOptions& options, const SimJob& job,
                                  const SimResult& result, bool strict, const RunContext& context) {
  if (options.folder.empty()) return Lines();
  const auto ranks = static_cast<int64_t>(result.class_of.size());
  if (!job.job) {
    GroupRanks groups;
    for (const auto& [number, members] : job.workload.groups) {
      groups[std::to_string(number)] = members;
    }
    return WriteRanks(options.folder, ranks, groups, context, [&](int64_t rank) -> Result<Trace> {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace,
                             ReadRankOfPrefix(job.prefix, rank, strict, context));
      return SimulatedTrace(trace, *job.workload.ranks[static_cast<size_t>(rank)].program,
                            result.OfRank(rank), context.limits);
    });
  }
  ETUDE_ASSIGN_OR_RETURN(const Job made,
                         SimulatedJob(*job.job, job.workload, result, context.limits));
  if (options.to == "et") {
    const ClassEvents events(made);
    return WriteRanks(options.folder, ranks, UnlistedGroups(made), context, [&](int64_t rank) {
      return TraceOfRank(made, events, rank, context.limits);
    });
  }
  ETUDE_RETURN_IF_ERROR(
      WriteJobFolder(made, options.folder, context,
                     options.to == "packed" ? ClassFiles::kPacked : ClassFiles::kChakra));
  return Lines{fmt::format("wrote {}: {} in {}", options.folder,
                           FormatCount(static_cast<uint64_t>(ranks), "rank"),
                           FormatCount(made.classes.size(), "class", "classes"))};
}

SimNodeNames NamesOfSimJob(const SimJob& job, bool strict, const RunContext& context) {
  const auto origin = [&job](int64_t rank, uint32_t node) {
    return job.workload.ranks[static_cast<size_t>(rank)].program->origin[node];
  };
  if (job.job) {
    // The name of a message on a rank contains its partner.
    return [&job, origin](int64_t rank, uint32_t node) -> std::string {
      const std::optional<size_t> rank_class = job.job->ClassOf(rank);
      if (!rank_class) return "";
      std::string name(job.job->classes[*rank_class].program.name(origin(rank, node)));
      const SimRank& self = job.workload.ranks[static_cast<size_t>(rank)];
      const int64_t peer = self.PeerOf(self.program->nodes[node]);
      for (size_t at = name.find(kPeerInName); at != std::string::npos && peer >= 0;
           at = name.find(kPeerInName, at)) {
        name.replace(at, kPeerInName.size(), std::to_string(peer));
      }
      return name;
    };
  }
  const auto traces = std::make_shared<std::map<int64_t, std::optional<Trace>>>();
  return [&job, strict, &context, traces, origin](int64_t rank, uint32_t node) -> std::string {
    const auto [at, is_new] = traces->try_emplace(rank);
    if (is_new) {
      if (Result<Trace> trace = ReadRankOfPrefix(job.prefix, rank, strict, context))
        at->second = *std::move(trace);
    }
    return at->second ? std::string(at->second->name(origin(rank, node))) : "";
  };
}

Result<std::vector<SimMemoryRow>> MemoryOfSimJob(const SimJob& job, const SimResult& result,
                                                 bool strict, const RunContext& context) {
  std::vector<SimMemoryRow> rows;
  const std::vector<int64_t> sizes = result.ClassSizes();
  for (size_t simulated = 0; simulated < result.ranks.size(); ++simulated) {
    const int64_t rank = result.first[simulated];
    std::optional<Trace> of_file;
    if (!job.job) {
      ETUDE_ASSIGN_OR_RETURN(of_file, ReadRankOfPrefix(job.prefix, rank, strict, context));
    }
    const std::optional<size_t> rank_class = job.job ? job.job->ClassOf(rank) : std::nullopt;
    if (!of_file && !rank_class) continue;
    const Trace& trace = of_file ? *of_file : job.job->classes[*rank_class].program;
    const SimProgram& program = *job.workload.ranks[static_cast<size_t>(rank)].program;
    const std::optional<SimMemory> memory = FindSimMemory(trace, program, result.ranks[simulated]);
    if (!memory) continue;
    SimMemoryRow& row =
        rows.emplace_back(SimMemoryRow{.rank = rank, .ranks = sizes[simulated], .memory = *memory});
    if (!memory->node) continue;
    row.name = trace.name(memory->node);
    row.node = trace.source_id(memory->node);
  }
  return rows;
}

}  // namespace etude
